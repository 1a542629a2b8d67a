# SPDX-License-Identifier: Apache-2.0
"""The model's configuration and every shape that follows from it (spec 1.1, 1.2).

`full()` is the published Kimi K3. `tiny()`, `tiny16()` and `mini()` keep its structure at sizes
that a CPU computes at once; `mini()` is the one that is trained. What one rank holds follows from
`kimi_k3.sharding.Sharding`. Nothing here imports torch.

Layers are counted from 0; the published lists count from 1.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path

from fasttrack.errors import InputError, Problem
from kimi_k3.hf_config import config_fields, published

MAX_DIMENSION = 2**31 - 1
MAX_LAYERS = 4096
MAX_FILE_BYTES = 16 << 20
MAY_BE_ZERO = frozenset({"dense_layers"})


@dataclass(frozen=True)
class K3Config:
    """One Kimi K3 model. Construction checks every field and names all that is wrong.

    Raises:
        InputError: a value is out of range or contradicts another.
    """

    hidden_size: int
    num_layers: int
    kda_layers: tuple[int, ...]
    """Layers with Kimi delta attention; all others have multi-head latent attention."""
    attn_res_block_size: int
    """Layers per saved block of the residual stream."""
    vocab_size: int
    max_positions: int
    rms_norm_eps: float

    kda_num_heads: int
    kda_head_dim: int
    """Width of a head's keys and of its values."""
    conv_kernel_size: int
    gate_lower_bound: float | None
    """Lower bound of the log decay; None selects the unbounded softplus gate."""
    a_log_padding: int
    """Stored length of A_log; the first `kda_num_heads` values are live, the others zero."""

    mla_num_heads: int
    q_lora_rank: int
    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    """Extra key columns, shared by all heads. The name is historical: nothing is rotated."""
    v_head_dim: int

    dense_layers: int
    """How many leading layers have a dense FFN; all others have experts."""
    intermediate_size: int
    num_experts: int
    num_experts_per_tok: int
    routed_expert_hidden_size: int
    """The latent width that the routed experts read and write."""
    moe_intermediate_size: int
    shared_intermediate_size: int
    """All shared experts, fused into one FFN."""
    norm_topk_prob: bool
    routed_scaling_factor: float
    situ_beta: float
    situ_linear_beta: float | None
    """Bound of the up branch; None leaves it linear."""

    min_expert_partition: int
    """A rank's slice of an expert is zero-padded to at least this many columns."""
    mx_group: int = 32
    """Input columns that share one scale byte."""
    l2_norm_eps: float = 1e-6
    """Added to the sum of squares of KDA queries and keys, not to their mean."""

    def __post_init__(self) -> None:
        problems = [*_wrong_types(self)] or [*_contradictions(self)]
        if problems:
            raise InputError(problems)

    @property
    def mla_layers(self) -> tuple[int, ...]:
        """Layers with multi-head latent attention."""
        return tuple(layer for layer in range(self.num_layers) if not self.is_kda(layer))

    @cached_property
    def _kda_set(self) -> frozenset[int]:
        return frozenset(self.kda_layers)

    def is_kda(self, layer: int) -> bool:
        """Whether a layer's attention is KDA; otherwise it is MLA."""
        return layer in self._kda_set

    def is_dense(self, layer: int) -> bool:
        """Whether a layer's FFN is dense; otherwise it has experts."""
        return layer < self.dense_layers

    def writes_block(self, layer: int) -> bool:
        """Whether a layer saves the residual stream that enters it as a block (spec 2.1)."""
        return layer % self.attn_res_block_size == 0

    def num_saved_blocks(self, layer: int) -> int:
        """Blocks that the pre-attention mix of a layer reads; `num_layers` asks for the last."""
        return -(-layer // self.attn_res_block_size)

    @property
    def num_blocks(self) -> int:
        """Saved blocks of the residual stream after the last layer."""
        return self.num_saved_blocks(self.num_layers)

    @property
    def kda_width(self) -> int:
        """Width of q, k, v and the output gate over all heads."""
        return self.kda_num_heads * self.kda_head_dim

    @property
    def kda_scale(self) -> float:
        """Factor of the normalised query."""
        return float(self.kda_head_dim**-0.5)

    @property
    def conv_channels(self) -> int:
        """Channels of the convolution state: q, k and v."""
        return 3 * self.kda_width

    def conv_window(self, draft: int) -> int:
        """Past inputs that the convolution state keeps, with `draft` draft tokens per request."""
        return self.conv_kernel_size - 1 + draft

    @property
    def qk_head_dim(self) -> int:
        """Width of a head's query: nope columns, then the extra ones."""
        return self.qk_nope_head_dim + self.qk_rope_head_dim

    @property
    def mla_softmax_scale(self) -> float:
        """Factor of the attention scores."""
        return float(self.qk_head_dim**-0.5)

    @property
    def q_b_width(self) -> int:
        """Rows of `q_b_proj`."""
        return self.mla_num_heads * self.qk_head_dim

    @property
    def kv_b_head_dim(self) -> int:
        """Rows of `kv_b_proj` that belong to one head: keys, then values."""
        return self.qk_nope_head_dim + self.v_head_dim

    @property
    def kv_b_width(self) -> int:
        """Rows of `kv_b_proj`."""
        return self.mla_num_heads * self.kv_b_head_dim

    @property
    def mla_width(self) -> int:
        """Width of the attention output and of its gate over all heads."""
        return self.mla_num_heads * self.v_head_dim

    @property
    def kv_row(self) -> int:
        """Width of a cached token: the latent, then the extra key columns."""
        return self.kv_lora_rank + self.qk_rope_head_dim

    @property
    def latent_groups(self) -> int:
        """Scale bytes per row of an expert's w1 and w3."""
        return self.routed_expert_hidden_size // self.mx_group

    @property
    def latent_bytes(self) -> int:
        """Packed bytes per row of an expert's w1 and w3."""
        return self.routed_expert_hidden_size // 2

    @property
    def expert_groups(self) -> int:
        """Scale bytes per row of an expert's w2."""
        return self.moe_intermediate_size // self.mx_group

    @property
    def expert_bytes(self) -> int:
        """Packed bytes per row of an expert's w2."""
        return self.moe_intermediate_size // 2

    @classmethod
    def from_hf(cls, config: Mapping[str, object], where: str = "config.json") -> "K3Config":
        """Reads the published `config.json`, whole or only its `text_config`.

        Args:
            config: the parsed file.
            where: its name, for messages.

        Raises:
            InputError: every field that is missing, of another type, contradictory or of a value
                that this implementation does not compute.
        """
        return cls(**config_fields(config, where))

    def to_hf(self) -> dict[str, object]:
        """The published form, which `from_hf` reads back to an equal configuration."""
        return published({field.name: getattr(self, field.name) for field in fields(self)})


def _wrong_types(config: K3Config) -> list[Problem]:
    problems = []
    for field in fields(config):
        value, kind = getattr(config, field.name), field.type
        if kind is int and not _is_dimension(value, 0 if field.name in MAY_BE_ZERO else 1):
            problems.append(_problem(field.name, value, f"an integer from 1 to {MAX_DIMENSION}"))
        elif kind is float and not _is_positive(value):
            problems.append(_problem(field.name, value, "a finite number above 0"))
        elif kind is bool and not isinstance(value, bool):
            problems.append(_problem(field.name, value, "true or false"))
    layers: object = config.kda_layers
    if not (isinstance(layers, tuple) and all(_is_dimension(layer, 0) for layer in layers)):
        problems.append(_problem("kda_layers", layers, "a tuple of layer indices"))
    if config.situ_linear_beta is not None and not _is_positive(config.situ_linear_beta):
        problems.append(
            _problem(
                "situ_linear_beta", config.situ_linear_beta, "a finite number above 0, or none"
            )
        )
    bound: object = config.gate_lower_bound
    if bound is not None and not (isinstance(bound, int | float) and -5.0 <= bound < 0.0):
        problems.append(_problem("gate_lower_bound", bound, "a number in [-5, 0), or none"))
    return problems


def _contradictions(c: K3Config) -> list[Problem]:
    """Values that are fine alone and impossible together."""
    layers = c.kda_layers
    rules = (
        ("num_layers", c.num_layers <= MAX_LAYERS, f"at most {MAX_LAYERS} layers"),
        ("kda_layers", tuple(sorted(set(layers))) == layers, "rising indices, none twice"),
        (
            "kda_layers",
            all(layer < c.num_layers for layer in layers),
            f"indices below num_layers {c.num_layers}",
        ),
        (
            "dense_layers",
            c.dense_layers <= c.num_layers,
            f"at most num_layers {c.num_layers}",
        ),
        (
            "a_log_padding",
            c.a_log_padding >= c.kda_num_heads,
            f"at least kda_num_heads {c.kda_num_heads}",
        ),
        (
            "num_experts_per_tok",
            c.num_experts_per_tok <= c.num_experts,
            f"at most num_experts {c.num_experts}",
        ),
        ("mx_group", c.mx_group == 32, "32, the only group of MXFP4"),
        *(
            (name, getattr(c, name) % c.mx_group == 0, f"a multiple of mx_group {c.mx_group}")
            for name in (
                "routed_expert_hidden_size",
                "moe_intermediate_size",
                "min_expert_partition",
            )
        ),
    )
    return [_problem(name, getattr(c, name), want) for name, holds, want in rules if not holds]


def _is_dimension(value: object, least: int) -> bool:
    integer = isinstance(value, int) and not isinstance(value, bool)
    return integer and least <= value <= MAX_DIMENSION  # type: ignore[operator]


def _is_positive(value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and 0 < value < math.inf  # type: ignore[operator]


def _problem(field: str, saw: object, want: str) -> Problem:
    shown = repr(saw)
    return Problem(f"config.{field}", shown if len(shown) <= 80 else f"{shown[:77]}...", want)


def full() -> K3Config:
    """The published Kimi K3: 93 layers, about 2.78 T parameters."""
    return K3Config(
        hidden_size=7168,
        num_layers=93,
        kda_layers=tuple(layer for layer in range(92) if layer % 4 != 3),
        attn_res_block_size=12,
        vocab_size=163840,
        max_positions=1_048_576,
        rms_norm_eps=1e-5,
        kda_num_heads=96,
        kda_head_dim=128,
        conv_kernel_size=4,
        gate_lower_bound=-5.0,
        a_log_padding=128,
        mla_num_heads=96,
        q_lora_rank=1536,
        kv_lora_rank=512,
        qk_nope_head_dim=128,
        qk_rope_head_dim=64,
        v_head_dim=128,
        dense_layers=1,
        intermediate_size=33792,
        num_experts=896,
        num_experts_per_tok=16,
        routed_expert_hidden_size=3584,
        moe_intermediate_size=3072,
        shared_intermediate_size=6144,
        norm_topk_prob=True,
        routed_scaling_factor=1.0,
        situ_beta=4.0,
        situ_linear_beta=25.0,
        min_expert_partition=256,
    )


def tiny() -> K3Config:
    """The smallest model with every structure, for TP 1, 2 and 4; TP 4 pads its experts."""
    return K3Config(
        hidden_size=128,
        num_layers=6,
        kda_layers=(0, 1, 2, 4),
        attn_res_block_size=2,
        vocab_size=512,
        max_positions=4096,
        rms_norm_eps=1e-5,
        kda_num_heads=4,
        kda_head_dim=16,
        conv_kernel_size=4,
        gate_lower_bound=-5.0,
        a_log_padding=16,
        mla_num_heads=4,
        q_lora_rank=48,
        kv_lora_rank=32,
        qk_nope_head_dim=16,
        qk_rope_head_dim=8,
        v_head_dim=16,
        dense_layers=1,
        intermediate_size=192,
        num_experts=16,
        num_experts_per_tok=4,
        routed_expert_hidden_size=64,
        moe_intermediate_size=128,
        shared_intermediate_size=256,
        norm_topk_prob=True,
        routed_scaling_factor=1.0,
        situ_beta=4.0,
        situ_linear_beta=25.0,
        min_expert_partition=64,
    )


def tiny16() -> K3Config:
    """`tiny()` with 16 heads of each kind and wider experts, for TP 8 and 16."""
    return replace(
        tiny(),
        kda_num_heads=16,
        mla_num_heads=16,
        a_log_padding=32,
        moe_intermediate_size=512,
        min_expert_partition=32,
    )


def mini() -> K3Config:
    """The model that is trained for evaluations: 4.75 M parameters, TP 1 to 8."""
    return K3Config(
        hidden_size=192,
        num_layers=6,
        kda_layers=(0, 1, 2, 4),
        attn_res_block_size=2,
        vocab_size=512,
        max_positions=4096,
        rms_norm_eps=1e-5,
        kda_num_heads=8,
        kda_head_dim=16,
        conv_kernel_size=4,
        gate_lower_bound=-5.0,
        a_log_padding=16,
        mla_num_heads=8,
        q_lora_rank=64,
        kv_lora_rank=64,
        qk_nope_head_dim=32,
        qk_rope_head_dim=16,
        v_head_dim=32,
        dense_layers=1,
        intermediate_size=256,
        num_experts=8,
        num_experts_per_tok=2,
        routed_expert_hidden_size=96,
        moe_intermediate_size=256,
        shared_intermediate_size=128,
        norm_topk_prob=True,
        routed_scaling_factor=1.0,
        situ_beta=4.0,
        situ_linear_beta=25.0,
        min_expert_partition=32,
    )


PRESETS: Mapping[str, Callable[[], K3Config]] = {
    "full": full,
    "tiny": tiny,
    "tiny16": tiny16,
    "mini": mini,
}


def named(name: str) -> K3Config:
    """A built-in configuration, or that of a published `config.json`.

    Args:
        name: a key of `PRESETS`, a file, or a directory that holds `config.json`.

    Raises:
        InputError: no such configuration, or the file is not one; see `K3Config.from_hf`.
    """
    if name in PRESETS:
        return PRESETS[name]()
    path = Path(name)
    path = path / "config.json" if path.is_dir() else path
    if not path.is_file():
        raise InputError.one("--config", repr(name), f"{', '.join(PRESETS)}, or a file")
    if path.stat().st_size > MAX_FILE_BYTES:
        saw = f"{path.stat().st_size} bytes"
        raise InputError.one(str(path), saw, f"at most {MAX_FILE_BYTES}")
    try:
        parsed = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise InputError.one(str(path), f"no JSON: {error}", "a JSON file") from error
    if not isinstance(parsed, dict):
        raise InputError.one(str(path), type(parsed).__name__, "a JSON object")
    return K3Config.from_hf(parsed, str(path))

# SPDX-License-Identifier: Apache-2.0
"""What one tensor-parallel rank holds: widths, padding, and its slice of each tensor (spec 3.1).

Shapes only, no torch. Heads, vocabulary and the columns of every FFN are divided evenly; norms,
low-rank first factors, router and latent projections are whole on every rank, as the stock path
reads them. Three paddings exist:

* an expert's slice is widened to `min_expert_partition` columns (zero codes, scale byte 127);
* packed projections of the decode kernels have a multiple of 16 rows (zero rows);
* the dense FFN's hidden row has a multiple of 128 columns (zero columns).
"""

from dataclasses import dataclass

from fasttrack.errors import InputError, Problem
from kimi_k3.config import K3Config

ROW_ALIGN = 16
"""Packed projections have a multiple of this many rows."""
DENSE_ALIGN = 128
"""The dense down projection's input has a multiple of this many columns."""


@dataclass(frozen=True)
class Split:
    """How ranks divide a tensor.

    Attributes:
        axis: the divided axis; None when every rank holds the whole tensor.
        expert_columns: for an axis along an expert's width, how many of its columns one element
            covers: 1 row of w1, 2 columns in a packed byte, 32 under a scale byte; else 0.
    """

    axis: int | None = None
    expert_columns: int = 0


WHOLE = Split()
ROWS = Split(axis=0)
COLUMNS = Split(axis=1)


@dataclass(frozen=True)
class Part:
    """A rank's part of a tensor.

    Attributes:
        axis: the divided axis, None for the whole tensor.
        start: first index along the axis.
        stop: index after the last.
        live: shape of what is read from the checkpoint.
        shape: shape that the rank allocates; larger than `live` by padding at the axis's end.
    """

    axis: int | None
    start: int
    stop: int
    live: tuple[int, ...]
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Sharding:
    """One rank of a tensor-parallel group.

    Attributes:
        config: the model.
        tp: ranks.
        rank: this one, from 0.
        dcp: ranks that share the tokens of a KV cache: 1 or `tp`.

    Raises:
        InputError: the model can not be divided so; every reason is named.
    """

    config: K3Config
    tp: int
    rank: int
    dcp: int = 1

    def __post_init__(self) -> None:
        problems = self._problems()
        if problems:
            raise InputError(problems)

    def _problems(self) -> list[Problem]:
        if self.tp < 1:
            return [Problem("--tp", str(self.tp), "at least 1")]
        problems = []
        if not 0 <= self.rank < self.tp:
            problems.append(Problem("--rank", str(self.rank), f"0 to {self.tp - 1}"))
        if self.dcp not in {1, self.tp}:
            problems.append(Problem("--dcp", str(self.dcp), f"1 or the value of --tp, {self.tp}"))
        for name in (
            "hidden_size",
            "vocab_size",
            "kda_num_heads",
            "mla_num_heads",
            "intermediate_size",
            "shared_intermediate_size",
            "num_experts",
            "routed_expert_hidden_size",
        ):
            width = getattr(self.config, name)
            if width % self.tp:
                problems.append(Problem("--tp", str(self.tp), f"a divisor of {name} {width}"))
        groups = self.config.expert_groups
        if groups % self.tp:
            want = f"a divisor of {groups}, the scale groups of moe_intermediate_size"
            problems.append(Problem("--tp", str(self.tp), want))
        return problems

    def part(self, shape: tuple[int, ...], split: Split) -> Part:
        """This rank's part of a tensor of that (live) shape."""
        if split.axis is None:
            return Part(None, 0, 0, shape, shape)
        width = shape[split.axis] // self.tp
        padded = width
        if split.expert_columns:
            padded = self.expert_partition // split.expert_columns
        start = width * self.rank
        return Part(
            split.axis,
            start,
            start + width,
            _with(shape, split.axis, width),
            _with(shape, split.axis, padded),
        )

    @property
    def kda_heads(self) -> int:
        """KDA heads of this rank."""
        return self.config.kda_num_heads // self.tp

    @property
    def kda_width(self) -> int:
        """Width of q, k, v and the output gate."""
        return self.kda_heads * self.config.kda_head_dim

    @property
    def conv_channels(self) -> int:
        """Channels of the convolution state: q, k and v."""
        return 3 * self.kda_width

    @property
    def kda_in_live_rows(self) -> int:
        """Rows of q, k, v, g, f_a and b."""
        return 4 * self.kda_width + self.config.kda_head_dim + self.kda_heads

    @property
    def kda_in_rows(self) -> int:
        """Rows of the packed KDA input projection [q k v g f_a b pad]."""
        return _round_up(self.kda_in_live_rows, ROW_ALIGN)

    @property
    def mla_heads(self) -> int:
        """MLA heads of this rank."""
        return self.config.mla_num_heads // self.tp

    @property
    def mla_width(self) -> int:
        """Width of the attention output and of its gate."""
        return self.mla_heads * self.config.v_head_dim

    @property
    def q_b_rows(self) -> int:
        """Rows of `q_b_proj`."""
        return self.mla_heads * self.config.qk_head_dim

    @property
    def kv_b_rows(self) -> int:
        """Rows of `kv_b_proj`."""
        return self.mla_heads * self.config.kv_b_head_dim

    @property
    def mla_in_rows(self) -> int:
        """Rows of the packed MLA input projection [q_a kv_a g]."""
        return self.config.q_lora_rank + self.config.kv_row + self.mla_width

    @property
    def attention_heads(self) -> int:
        """Heads that this rank attends: its own, or all of them over its tokens under DCP."""
        return self.config.mla_num_heads if self.dcp > 1 else self.mla_heads

    @property
    def router_live_rows(self) -> int:
        """Experts whose logits this rank computes in the packed front projection."""
        return self.config.num_experts // self.tp

    @property
    def router_rows(self) -> int:
        """The router's rows in the packed front projection, with padding."""
        return _round_up(self.router_live_rows, ROW_ALIGN)

    @property
    def latent_rows(self) -> int:
        """Latent columns that this rank computes in the packed front projection."""
        return self.config.routed_expert_hidden_size // self.tp

    @property
    def front_rows(self) -> int:
        """Rows of the packed front projection [router pad latent_down]."""
        return self.router_rows + self.latent_rows

    @property
    def hidden_columns(self) -> int:
        """Columns of the FFN output that this rank finishes in the tail."""
        return self.config.hidden_size // self.tp

    @property
    def expert_width(self) -> int:
        """Live columns of each routed expert."""
        return self.config.moe_intermediate_size // self.tp

    @property
    def expert_partition(self) -> int:
        """Columns of each routed expert, with padding."""
        return max(self.expert_width, self.config.min_expert_partition)

    @property
    def w13_rows(self) -> int:
        """Rows of an expert's w13: the padded gate rows, then the padded up rows."""
        return 2 * self.expert_partition

    @property
    def w2_bytes(self) -> int:
        """Packed bytes per row of an expert's w2, with padding."""
        return self.expert_partition // 2

    @property
    def w2_groups(self) -> int:
        """Scale bytes per row of an expert's w2, with padding."""
        return self.expert_partition // self.config.mx_group

    @property
    def shared_width(self) -> int:
        """Columns of the fused shared experts."""
        return self.config.shared_intermediate_size // self.tp

    @property
    def dense_width(self) -> int:
        """Live columns of the dense FFN."""
        return self.config.intermediate_size // self.tp

    @property
    def dense_padded_width(self) -> int:
        """Columns of the dense down projection's input, with padding."""
        return _round_up(self.dense_width, DENSE_ALIGN)

    @property
    def vocab_rows(self) -> int:
        """Tokens whose embedding and logits this rank holds."""
        return self.config.vocab_size // self.tp

    @property
    def vocab_start(self) -> int:
        """The first of them."""
        return self.vocab_rows * self.rank

    def cached_tokens(self, tokens: int) -> int:
        """A request's tokens that this rank caches at most, when ranks take tokens one by one."""
        return -(-tokens // self.dcp)


def _with(shape: tuple[int, ...], axis: int, width: int) -> tuple[int, ...]:
    return (*shape[:axis], width, *shape[axis + 1 :])


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple

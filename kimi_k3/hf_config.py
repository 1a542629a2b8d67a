# SPDX-License-Identifier: Apache-2.0
"""Field names of the published `config.json`, and what of it this implementation computes.

The published file describes a multimodal model; its `text_config` is what is read here. Four
fields are not in it, and may be added by a file that describes a small model:
`shared_expert_intermediate_size` (width of one shared expert, by default `moe_intermediate_size`),
`a_log_padding` (by default the larger of KDA's head count and head width, which is 128 for
the published checkpoint), `min_expert_partition` (256) and `l2_norm_eps` (1e-6).
"""

from collections.abc import Mapping
from typing import Any

from fasttrack.errors import InputError, Problem

# Our field, the published one.
COUNTS: Mapping[str, str] = {
    "hidden_size": "hidden_size",
    "num_layers": "num_hidden_layers",
    "attn_res_block_size": "attn_res_block_size",
    "vocab_size": "vocab_size",
    "max_positions": "max_position_embeddings",
    "kda_num_heads": "linear_attn_config.num_heads",
    "kda_head_dim": "linear_attn_config.head_dim",
    "conv_kernel_size": "linear_attn_config.short_conv_kernel_size",
    "mla_num_heads": "num_attention_heads",
    "q_lora_rank": "q_lora_rank",
    "kv_lora_rank": "kv_lora_rank",
    "qk_nope_head_dim": "qk_nope_head_dim",
    "qk_rope_head_dim": "qk_rope_head_dim",
    "v_head_dim": "v_head_dim",
    "dense_layers": "first_k_dense_replace",
    "intermediate_size": "intermediate_size",
    "num_experts": "num_experts",
    "num_experts_per_tok": "num_experts_per_token",
    "routed_expert_hidden_size": "routed_expert_hidden_size",
    "moe_intermediate_size": "moe_intermediate_size",
}
NUMBERS: Mapping[str, str] = {
    "rms_norm_eps": "rms_norm_eps",
    "routed_scaling_factor": "routed_scaling_factor",
    "situ_beta": "activation_situ_beta",
}
SWITCHES: Mapping[str, str] = {"norm_topk_prob": "moe_renormalize"}
MAYBE_NUMBERS: Mapping[str, str] = {
    "gate_lower_bound": "linear_attn_config.gate_lower_bound",
    "situ_linear_beta": "activation_situ_linear_beta",
}

# What the mathematics here is written for. The first value of each is what `published` writes;
# a field that is absent counts as the second.
SUPPORTED: Mapping[str, tuple[object, object]] = {
    "hidden_act": ("situ", None),
    "mla_use_nope": (True, None),
    "mla_use_output_gate": (True, None),
    "linear_attn_config.use_full_rank_gate": (True, None),
    "latent_moe_use_norm": (True, None),
    "moe_router_activation_func": ("sigmoid", None),
    "num_expert_group": (1, 1),
    "topk_group": (1, 1),
    "moe_layer_freq": (1, 1),
    "tie_word_embeddings": (False, False),
    "num_nextn_predict_layers": (0, 0),
}
DEFAULT_MIN_EXPERT_PARTITION = 256
DEFAULT_L2_NORM_EPS = 1e-6
LARGEST_NUMBER = 1e30
ABSENT = object()


class _Reader:
    """Looks fields up by dotted path and collects what is wrong with them."""

    def __init__(self, config: Mapping[str, object], where: str) -> None:
        self.config = config
        self.where = where
        self.problems: list[Problem] = []

    def value(self, path: str) -> object:
        found: object = self.config
        for part in path.split("."):
            if not isinstance(found, Mapping) or part not in found:
                return ABSENT
            found = found[part]
        return found

    def report(self, path: str, saw: str, want: str) -> None:
        self.problems.append(Problem(f"{self.where}: {path}", saw, want))

    def refuse(self, path: str, value: object, want: str) -> None:
        if isinstance(value, list | Mapping):
            self.report(path, "a list" if isinstance(value, list) else "an object", want)
        else:
            self.report(path, "no such field" if value is ABSENT else repr(value)[:80], want)

    def count(self, path: str, default: int | None = None) -> int:
        value = self.value(path)
        if value is ABSENT and default is not None:
            return default
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        self.refuse(path, value, "an integer")
        return 1

    def number(self, path: str, default: float | None = None) -> float:
        value = self.value(path)
        if value is ABSENT and default is not None:
            return default
        if isinstance(value, int | float) and not isinstance(value, bool):
            if abs(value) > LARGEST_NUMBER:
                self.refuse(path, value, f"at most {LARGEST_NUMBER:g}")
                return 1.0
            return float(value)
        self.refuse(path, value, "a number")
        return 1.0

    def maybe_number(self, path: str) -> float | None:
        return None if self.value(path) in (ABSENT, None) else self.number(path)

    def switch(self, path: str) -> bool:
        value = self.value(path)
        if isinstance(value, bool):
            return value
        self.refuse(path, value, "true or false")
        return True

    def layers(self, path: str) -> list[int]:
        value = self.value(path)
        if isinstance(value, list) and all(type(item) is int for item in value):
            return value
        self.refuse(path, value, "a list of layer numbers, counted from 1")
        return []


def config_fields(config: Mapping[str, object], where: str) -> dict[str, Any]:
    """The fields of `K3Config` that a published configuration states.

    Raises:
        InputError: see `K3Config.from_hf`.
    """
    inner = config.get("text_config", config)
    if not isinstance(inner, Mapping):
        raise InputError.one(f"{where}: text_config", repr(inner)[:80], "an object")
    read = _Reader({**config, **inner}, where)  # the outer file holds `quantization_config`
    found: dict[str, Any] = {name: read.count(path) for name, path in COUNTS.items()}
    found |= {name: read.number(path) for name, path in NUMBERS.items()}
    found |= {name: read.switch(path) for name, path in SWITCHES.items()}
    found |= {name: read.maybe_number(path) for name, path in MAYBE_NUMBERS.items()}
    found["kda_layers"] = _kda_layers(read, found["num_layers"])
    shared = read.count("num_shared_experts")
    width = read.count("shared_expert_intermediate_size", found["moe_intermediate_size"])
    found["shared_intermediate_size"] = shared * width
    found["a_log_padding"] = read.count("a_log_padding", _default_padding(found))
    found["min_expert_partition"] = read.count("min_expert_partition", DEFAULT_MIN_EXPERT_PARTITION)
    found["l2_norm_eps"] = read.number("l2_norm_eps", DEFAULT_L2_NORM_EPS)
    _check_supported(read, found)
    if read.problems:
        raise InputError(read.problems)
    return found


def _default_padding(found: Mapping[str, Any]) -> int:
    return max(int(found["kda_num_heads"]), int(found["kda_head_dim"]))


def _kda_layers(read: _Reader, num_layers: int) -> tuple[int, ...]:
    """The 0-based KDA layers, after both lists are seen to divide all layers between them."""
    kda_path, full_path = "linear_attn_config.kda_layers", "linear_attn_config.full_attn_layers"
    before = len(read.problems)
    kda, full = read.layers(kda_path), read.layers(full_path)
    if len(read.problems) > before:
        return ()
    both = sorted(set(kda) & set(full))
    if both:
        read.report(full_path, repr(both)[:80], f"no layer that {kda_path} lists too")
    outside = sorted(layer for layer in {*kda, *full} if not 1 <= layer <= num_layers)
    if outside:
        read.report(
            kda_path, repr(outside)[:80], f"layer numbers from 1 to num_hidden_layers {num_layers}"
        )
    missing = num_layers - len({*kda, *full})
    if not outside and missing:
        read.report(kda_path, f"{missing} layers in neither list", f"each of {num_layers} in one")
    for path, layers in ((kda_path, kda), (full_path, full)):
        if len(set(layers)) != len(layers):
            read.report(path, "a layer twice", "each layer once")
    return tuple(layer - 1 for layer in sorted(kda))


def _check_supported(read: _Reader, found: Mapping[str, Any]) -> None:
    for path, (want, absent) in SUPPORTED.items():
        value = read.value(path)
        if (absent if value is ABSENT else value) != want:
            read.refuse(path, value, f"{want!r}, the only value that is implemented")
    heads = read.count("num_key_value_heads", found["mla_num_heads"])
    if heads != found["mla_num_heads"]:
        read.refuse("num_key_value_heads", heads, f"num_attention_heads {found['mla_num_heads']}")
    _check_quantisation(read)


def _check_quantisation(read: _Reader) -> None:
    """Only MXFP4 experts in groups of 32 are implemented; an absent section means just those."""
    section = read.value("quantization_config")
    if section in (ABSENT, None):
        return
    group = "quantization_config.config_groups.group_0"
    for path, want in (
        ("quantization_config.quant_method", "compressed-tensors"),
        (f"{group}.format", "mxfp4-pack-quantized"),
        (f"{group}.weights.num_bits", 4),
        (f"{group}.weights.group_size", 32),
    ):
        value = read.value(path)
        if value != want:
            read.refuse(path, value, f"{want!r}, the only value that is implemented")


def published(config: Mapping[str, Any]) -> dict[str, object]:
    """The published form of `K3Config`'s fields."""
    flat: dict[str, object] = {}
    for names in (COUNTS, NUMBERS, SWITCHES, MAYBE_NUMBERS):
        flat |= {path: config[name] for name, path in names.items()}
    flat |= {path: want for path, (want, _) in SUPPORTED.items()}
    kda = [layer + 1 for layer in config["kda_layers"]]
    flat["linear_attn_config.kda_layers"] = kda
    every = range(1, config["num_layers"] + 1)
    flat["linear_attn_config.full_attn_layers"] = [n for n in every if n not in set(kda)]
    flat["num_key_value_heads"] = config["mla_num_heads"]
    shared, rest = divmod(config["shared_intermediate_size"], config["moe_intermediate_size"])
    flat["num_shared_experts"] = 1 if rest else shared
    if rest:
        flat["shared_expert_intermediate_size"] = config["shared_intermediate_size"]
    for name, default in (
        ("a_log_padding", _default_padding(config)),
        ("min_expert_partition", DEFAULT_MIN_EXPERT_PARTITION),
        ("l2_norm_eps", DEFAULT_L2_NORM_EPS),
    ):
        if config[name] != default:
            flat[name] = config[name]
    return _nested(flat)


def _nested(flat: Mapping[str, object]) -> dict[str, object]:
    linear = {
        path.removeprefix("linear_attn_config."): value
        for path, value in flat.items()
        if path.startswith("linear_attn_config.")
    }
    top = {path: value for path, value in flat.items() if "." not in path}
    return {"model_type": "kimi_linear", **top, "linear_attn_config": linear}

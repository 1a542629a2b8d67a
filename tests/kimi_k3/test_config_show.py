# SPDX-License-Identifier: Apache-2.0
"""`kimi-k3 config show` against independent sums, and against what is really allocated."""

import json
import re
import subprocess
import sys
from typing import Any

import pytest
import torch
from click.testing import CliRunner

from kimi_k3.activations import Load
from kimi_k3.assembly import TORCH_DTYPES, disassemble, shard
from kimi_k3.cli import cli
from kimi_k3.config import PRESETS, K3Config, full, mini, tiny
from kimi_k3.random_init import random_weights
from kimi_k3.reference.context import Context
from kimi_k3.reference.hooks import LAYER_HOOKS, STEP_HOOKS, Recorder
from kimi_k3.reference.model import Model
from kimi_k3.reference.state import CacheShape, KdaState, allocate
from kimi_k3.resident import Owner, Sums, resident, sums
from kimi_k3.rounding import specialized
from kimi_k3.sharding import Sharding
from kimi_k3.weights import ModelWeights, MoeWeights

GB = 1_000_000_000


def show(*arguments: str) -> str:
    done = CliRunner().invoke(cli, ["config", "show", *arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def shown(*arguments: str) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(show(*arguments, "--format", "json"))
    return parsed


def sums_of(config: K3Config, tp: int) -> Sums:
    return sums(resident(Sharding(config, tp, tp - 1), Load()))


def full_rank_bytes(tp: int) -> int:
    """Spec 1.2 and 3.1 once more, as one formula in numbers; nothing from the code under test."""
    bf16, fp32, h = 2, 4, 7168
    layer = bf16 * 6 * h
    kda = bf16 * (4 * 12288 // tp * h + 96 // tp * h + 128 * h + 12288 // tp * 128)
    kda += fp32 * (3 * 12288 // tp * 4 + 96 // tp + 12288 // tp + 128)
    kda += bf16 * h * 12288 // tp
    mla = bf16 * (1536 * h + 1536 + 18432 // tp * 1536 + 576 * h + 512 + 24576 // tp * 512)
    mla += bf16 * 2 * h * 12288 // tp
    moe = bf16 * (896 * h + 2 * 3584 * h + 3584 + 3 * 6144 // tp * h) + fp32 * 896
    experts = 896 * 3 * 3072 * 3584 * 17 // 32 // tp
    dense = bf16 * 3 * 33792 // tp * h
    model = bf16 * (2 * 163840 // tp * h + 3 * h)
    return 93 * layer + 69 * kda + 24 * mla + 92 * (moe + experts) + dense + model


@pytest.mark.parametrize(("tp", "gigabytes"), [(8, 205), (16, 108)])
def test_weights_of_a_rank_are_the_published_sums(tp: int, gigabytes: int) -> None:
    weights = sums_of(full(), tp).weights
    assert weights == full_rank_bytes(tp)
    assert weights // GB == gigabytes


def test_padded_experts_make_tp16_138_gigabytes() -> None:
    total = sums_of(full(), 16)
    experts = 92 * 896 * (256 - 192) * 3 * 3584 * 17 // 32
    assert (total.weights + experts) // GB == 138
    # Besides: 10 zero rows of 69 KDA projections and 64 columns of the dense down projection.
    assert total.padding == experts + 69 * 10 * 7168 * 2 + 7168 * 64 * 2
    assert total.copies == 92 * 288 * 7168 * 2
    assert total.resident_weights == total.weights + total.padding + total.copies


def test_tp8_pads_four_rows_of_each_kda_projection_and_nothing_else() -> None:
    total = sums_of(full(), 8)
    assert total.padding == 69 * 4 * 7168 * 2
    assert total.copies == 92 * 560 * 7168 * 2


def test_the_whole_text_model_is_the_published_size() -> None:
    assert 1452 < sums_of(full(), 1).weights / 2**30 < 1454  # 1454 with the vision tower


def test_the_experts_of_a_kda_layer_and_one_row_cost_what_the_roofline_says() -> None:
    """Spec 5.1, KDA+MoE at one row: 195.2 MB at TP8 and 98.6 MB at TP16."""
    for tp, megabytes in ((8, 195.2), (16, 98.6)):
        s = Sharding(full(), tp, 0)
        tensors = {t.name: t.live_bytes // t.copies for t in resident(s, Load())}
        prefix = "model.layers.*.block_sparse_moe"
        attention = tensors["layer.*.kda.in_proj"] + sum(
            tensors[f"model.layers.*.self_attn.{name}.weight"] for name in ("f_b_proj", "o_proj")
        )
        shared = sum(
            tensors[f"{prefix}.shared_experts.{name}_proj.weight"]
            for name in ("gate", "up", "down")
        )
        up = tensors[f"{prefix}.routed_expert_up_proj.weight"] // tp
        expert = sum(size for name, size in tensors.items() if "{expert}" in name)
        total = attention + tensors["layer.*.moe.front"] + shared + up + 16 * expert
        assert total / 1e6 == pytest.approx(megabytes, rel=2e-3)


def test_the_mini_model_has_the_size_of_the_design() -> None:
    tensors = [t for t in resident(Sharding(mini(), 1, 0), Load()) if t.owner is Owner.CHECKPOINT]
    per_byte = {True: 2, False: 0}
    parameters = sum(
        t.live_bytes * per_byte["packed" in t.name]
        if t.dtype == "U8"
        else t.live_bytes // t.dtype.size
        for t in tensors
    )
    assert round(parameters / 1e6, 2) == 4.75
    assert round(sum(t.bytes for t in tensors) / 2**20, 1) == 4.9


def memory(weights: ModelWeights) -> int:
    """Bytes of every tensor that a rank's weights hold, padding included."""
    total, todo = 0, [weights]
    while todo:
        item: Any = todo.pop()
        if isinstance(item, torch.Tensor):
            total += item.numel() * item.element_size()
        else:
            todo += item if isinstance(item, tuple) else vars(item).values()
    return total


@pytest.mark.parametrize(
    ("name", "tp"), [("tiny", 1), ("tiny", 2), ("tiny", 4), ("tiny16", 8), ("tiny16", 16)]
)
def test_the_table_is_what_weights_allocate(
    name: str, tp: int, request: pytest.FixtureRequest
) -> None:
    rank = tp - 1
    whole = request.getfixturevalue(f"{name}_weights")
    config = PRESETS[name]()
    weights = shard(whole, config, tp, rank)
    sharding = Sharding(config, tp, rank)
    table = [t for t in resident(sharding, Load()) if t.owner is Owner.CHECKPOINT]
    assert memory(weights) == sum(t.bytes for t in table)
    allocated: dict[str, int] = {}
    for entry, value in disassemble(weights, sharding):
        key = entry.tensor.name
        key = key if entry.name == key else f"model.layers.*.{key}"
        allocated[key] = allocated.get(key, 0) + value.numel() * value.element_size()
        assert value.dtype == TORCH_DTYPES[entry.tensor.dtype]
    listed: dict[str, int] = {}
    for t in table:  # KDA's and MLA's o_proj and g_proj have one name and a row each
        listed[t.name] = listed.get(t.name, 0) + t.live_bytes
    assert allocated == listed


def test_padding_beside_experts_is_what_the_table_says() -> None:
    weights = random_weights(tiny(), tp=4, rank=1)
    moe = weights.layers[1].ffn
    assert isinstance(moe, MoeWeights)
    assert tuple(moe.experts.w13_packed.shape) == (16, 128, 32)
    assert tuple(moe.experts.w2_scale.shape) == (16, 64, 2)


@pytest.mark.parametrize(("name", "tp"), [("tiny", 1), ("tiny", 4), ("tiny16", 16)])
def test_state_and_cache_are_what_the_reference_allocates(
    name: str, tp: int, request: pytest.FixtureRequest
) -> None:
    draft, page, config = 3, 16, PRESETS[name]()
    pages = config.max_positions // page
    weights = shard(request.getfixturevalue(f"{name}_weights"), config, tp, tp - 1)
    caches = allocate(config, weights, specialized(), CacheShape(1 + draft, pages, page, draft))
    saw: dict[str, int] = {}
    for layer in caches.layers:
        parts = (
            {"layer.*.kda.recurrent": layer.recurrent, "layer.*.kda.conv_window": layer.conv}
            if isinstance(layer, KdaState)
            else {"layer.*.mla.kv_cache": layer.pages}
        )
        for key, tensor in parts.items():
            saw[key] = saw.get(key, 0) + tensor.numel() * tensor.element_size()
    table = resident(Sharding(config, tp, tp - 1), Load(draft=draft))
    assert saw == {t.name: t.bytes for t in table if t.owner in {Owner.STATE, Owner.CACHE}}


def test_intermediates_have_the_shapes_that_the_reference_records(
    tiny_weights: ModelWeights,
) -> None:
    config, q = tiny(), 3
    context = Context(config, specialized())
    caches = allocate(config, tiny_weights, specialized(), CacheShape(1 + q, 2, 16, q - 1))
    recorder = Recorder()
    Model(context, tiny_weights).step(
        torch.tensor([1, 2, 3]),
        q,
        caches,
        slots=torch.tensor([[1, 2, 3]]),
        accepted=torch.tensor([1]),
        block_table=torch.tensor([[1]]),
        lengths=torch.tensor([q]),
        tap=recorder,
    )
    table = {t.name: t for t in resident(Sharding(config, 1, 0), Load(rows=q, draft=q - 1))}
    seen = set()
    for name, value in recorder.values.items():
        layer = re.match(r"layer\.(\d+)\.", name)
        row = table[name.replace(layer[0], "layer.*.") if layer else name]
        assert not layer or int(layer[1]) in row.layers, name
        if name.endswith(".logit"):  # as many sources as the last layers mix
            assert value.shape[1] <= row.live[1]
        else:
            assert tuple(value.shape) == row.live, name
        seen.add(row.name)
    assert seen == {f"layer.*.{name}" for name in LAYER_HOOKS} | set(STEP_HOOKS)


def test_the_answer_needs_no_weights_no_torch_and_no_time() -> None:
    code = (
        "import atexit, resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 29, 1 << 29))\n"
        "atexit.register(lambda: print('torch' in sys.modules, file=sys.stderr))\n"
        "sys.argv = 'kimi-k3 config show --config full --tp 16 --rank 5'.split()\n"
        "from kimi_k3.cli import main\n"
        "main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=20
    )
    assert (done.returncode, done.stderr.strip()) == (0, "False")
    assert "108,277,365,880 bytes = 108.28 GB" in done.stdout


def test_text_and_json_say_the_same() -> None:
    text, parsed = show("--tp", "8", "--rank", "3"), shown("--tp", "8", "--rank", "3")
    assert parsed["version"] == 1
    assert (parsed["tp"], parsed["rank"], parsed["config"]) == (8, 3, "full")
    lines = [line.split(maxsplit=2) for line in text.splitlines() if line]
    for tensor in parsed["tensors"]:
        (rest,) = [
            words[2]
            for words in lines
            if words[0] == tensor["name"] and words[2].endswith(tensor["source"])
        ]
        assert f" {tensor['bytes']:,} " in rest
        assert str(tensor["shape"]) in rest
        assert str(tensor["global_shape"]) in rest
        assert f" {tensor['dtype']} " in rest
    for value in parsed["sums"].values():
        assert f"{value:,} bytes" in text
    assert (
        sum(t["bytes"] for t in parsed["tensors"] if t["owner"] == "cache")
        == parsed["sums"]["cache"]
    )


def test_every_row_names_its_equation_and_its_owner() -> None:
    for tensor in shown("--config", "tiny", "--tp", "2")["tensors"]:
        section = tensor["source"].split()[0].rstrip(",")
        assert section in {"1.3", "1.4", "2.1", "2.2", "2.3", "2.4", "2.5", "2.6", "2.7", "3.3"}
        assert tensor["owner"] in {o.value for o in Owner}


def test_context_parallelism_divides_the_cache_and_gathers_the_heads() -> None:
    alone = {t["name"]: t for t in shown("--tp", "8")["tensors"]}
    shared = {t["name"]: t for t in shown("--tp", "8", "--dcp", "8", "--kv", "fp8")["tensors"]}
    cache = "layer.*.mla.kv_cache"
    assert shared[cache]["bytes"] * 16 == alone[cache]["bytes"]
    assert shared["layer.*.mla.partial_z"]["shape"] == [1, 96, 512]
    assert alone["layer.*.mla.partial_z"]["shape"] == [1, 12, 512]
    assert shared["layer.*.mla.gathered_query"]["bytes"] == 96 * 576


def test_rows_and_draft_tokens_scale_what_they_should() -> None:
    one = shown("--config", "tiny")["sums"]
    many = shown("--config", "tiny", "--rows", "8", "--draft", "7")["sums"]
    assert many["activations"] == 8 * one["activations"]
    assert many["weights"] == one["weights"]
    s, conv = 16 * 16 * 4 * 4, 3 * 64 * 2
    assert one["state"] == 4 * (s + conv * 3)
    assert many["state"] == 4 * 8 * (s + conv * 10)


def test_what_is_wrong_with_a_question_is_said_on_stderr_with_exit_code_2() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kimi_k3", "config", "show", "--tp", "7", "--rank", "9"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "kimi-k3: --rank: saw 9; want 0 to 6" in done.stderr
    assert done.stdout == ""

# SPDX-License-Identifier: Apache-2.0
"""Checkpoints: what is written is read back, a rank reads its bytes only, damage is named."""

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import kimi_k3.checkpoint
from fasttrack.errors import InputError
from kimi_k3.assembly import disassemble, layer_entries, shard
from kimi_k3.checkpoint import INDEX, PREFIX, SINGLE, load_weights, save_checkpoint
from kimi_k3.config import full, mini, named, tiny
from kimi_k3.random_init import random_weights
from kimi_k3.sharding import Sharding
from kimi_k3.weights import KdaWeights, ModelWeights
from tests.kimi_k3.builders import assert_equal

CASES = Path(__file__).resolve().parents[1] / "cases/kimi_k3"
PROBLEMS = yaml.safe_load((CASES / "checkpoint-problems.yaml").read_text("utf-8"))


@pytest.fixture(scope="session")
def three_files(tiny_weights: ModelWeights, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("three")
    save_checkpoint(tiny_weights, path, tiny(), shards=3)
    return path


# What is written is read back.


@pytest.mark.parametrize("shards", [1, 2, 7])
def test_a_checkpoint_is_read_back_bit_for_bit(
    tiny_weights: ModelWeights, tmp_path: Path, shards: int
) -> None:
    save_checkpoint(tiny_weights, tmp_path, tiny(), shards)
    assert_equal(load_weights(tmp_path, tiny()), tiny_weights, tiny())
    assert named(str(tmp_path)) == tiny()
    files = sorted(p.name for p in tmp_path.glob("*.safetensors"))
    assert len(files) == shards
    assert (tmp_path / INDEX).exists() == (shards > 1)
    assert not list(tmp_path.glob("*.partial"))
    if shards > 1:
        index = json.loads((tmp_path / INDEX).read_text())
        assert set(index["weight_map"].values()) == set(files)
        sizes = [(tmp_path / f).stat().st_size for f in files]
        assert max(sizes) < 2 * min(sizes)
        held = [load_file(tmp_path / f) for f in files]
        total = sum(t.numel() * t.element_size() for part in held for t in part.values())
        assert index["metadata"]["total_size"] == total


def test_a_single_file_is_read_by_its_own_name(tiny_weights: ModelWeights, tmp_path: Path) -> None:
    save_checkpoint(tiny_weights, tmp_path, tiny())
    (tmp_path / SINGLE).rename(tmp_path / "other.safetensors")
    assert_equal(load_weights(tmp_path / "other.safetensors", tiny()), tiny_weights, tiny())


def test_a_checkpoint_that_becomes_one_file_loses_its_index(
    tiny_weights: ModelWeights, tmp_path: Path
) -> None:
    save_checkpoint(random_weights(tiny(), seed=1), tmp_path, tiny(), shards=2)
    save_checkpoint(tiny_weights, tmp_path, tiny())
    assert_equal(load_weights(tmp_path, tiny()), tiny_weights, tiny())


def test_a_file_may_be_replaced_while_its_weights_are_in_use(
    tiny_weights: ModelWeights, tmp_path: Path
) -> None:
    save_checkpoint(tiny_weights, tmp_path, tiny())
    loaded = load_weights(tmp_path, tiny())
    size = (tmp_path / SINGLE).stat().st_size
    with (tmp_path / SINGLE).open("r+b") as file:
        file.write(b"\xff" * size)
    assert_equal(loaded, tiny_weights, tiny())


def test_tensor_names_are_the_published_ones(three_files: Path) -> None:
    index = json.loads((three_files / INDEX).read_text())["weight_map"]
    layer = "language_model.model.layers.1."
    for name in (
        "language_model.model.embed_tokens.weight",
        "language_model.lm_head.weight",
        "language_model.model.output_attn_res_proj.weight",
        f"{layer}self_attention_res_norm.weight",
        f"{layer}self_attn.A_log",
        f"{layer}self_attn.q_conv1d.weight",
        f"{layer}block_sparse_moe.gate.e_score_correction_bias",
        f"{layer}block_sparse_moe.routed_expert_down_proj.weight",
        f"{layer}block_sparse_moe.shared_experts.down_proj.weight",
        f"{layer}block_sparse_moe.experts.15.w3.weight_packed",
        "language_model.model.layers.3.self_attn.kv_a_proj_with_mqa.weight",
        "language_model.model.layers.0.mlp.gate_proj.weight",
    ):
        assert name in index
    moe_layers, common, kda, mla, moe = 5, 6, 14, 8, 8
    assert len(index) == 5 + 6 * common + 4 * kda + 2 * mla + 3 + moe_layers * (moe + 16 * 6)


def test_the_full_model_has_the_published_number_of_tensors() -> None:
    per_layer = [sum(1 for _ in layer_entries(full(), n)) for n in (0, 1, 3)]
    assert per_layer == [6 + 14 + 3, 6 + 14 + 8 + 896 * 6, 6 + 8 + 8 + 896 * 6]


def test_names_without_the_prefix_and_a_vision_tower_are_accepted(
    three_files: Path, tiny_weights: ModelWeights, tmp_path: Path
) -> None:
    tensors = {k: t for f in three_files.glob("*.safetensors") for k, t in load_file(f).items()}
    bare = {k.removeprefix(PREFIX): t for k, t in tensors.items()}
    vision = {
        "vision_tower.encoder.weight": torch.ones(3),
        "mm_projector.proj.weight": torch.ones(1),
    }
    save_file(bare | vision, tmp_path / SINGLE)
    assert_equal(load_weights(tmp_path, tiny()), tiny_weights, tiny())
    save_file(tensors | vision, tmp_path / SINGLE)
    assert_equal(load_weights(tmp_path, tiny()), tiny_weights, tiny())


# A rank reads its bytes only.


class Counting:
    """A safetensors file that counts the bytes of every slice that is taken from it."""

    total = 0

    def __init__(self, path: Path, framework: str) -> None:
        self.context = safe_open(path, framework=framework)

    def __enter__(self) -> "Counting":
        self.file = self.context.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.context.__exit__(*error)

    def keys(self) -> list[str]:
        return list(self.file.keys())

    def get_slice(self, key: str) -> "CountingSlice":
        return CountingSlice(self.file.get_slice(key))


class CountingSlice:
    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.get_shape, self.get_dtype = inner.get_shape, inner.get_dtype

    def __getitem__(self, index: Any) -> torch.Tensor:
        value: torch.Tensor = self.inner[index]
        Counting.total += value.numel() * value.element_size()
        return value


@pytest.mark.parametrize("tp", [1, 2, 4])
def test_a_rank_reads_only_its_bytes(
    three_files: Path, monkeypatch: pytest.MonkeyPatch, tp: int
) -> None:
    monkeypatch.setattr(kimi_k3.checkpoint, "safe_open", Counting)
    for rank in range(tp):
        monkeypatch.setattr(Counting, "total", 0)
        weights = load_weights(three_files, tiny(), tp, rank)
        share = sum(
            value.numel() * value.element_size()
            for _, value in disassemble(weights, Sharding(tiny(), tp, rank))
        )
        # A_log is read whole, to see that its padding is zero.
        assert Counting.total == share + 4 * (16 - 4 // tp) * 4


@pytest.mark.parametrize("tp", [2, 4])
def test_a_rank_loads_what_dividing_the_whole_gives(
    three_files: Path, tiny_weights: ModelWeights, tp: int
) -> None:
    for rank in range(tp):
        loaded = load_weights(three_files, tiny(), tp, rank)
        assert_equal(loaded, shard(tiny_weights, tiny(), tp, rank), tiny(), tp, rank)


# Damage is named.


def key_of(name: str) -> str:
    return name.removeprefix("raw ") if name.startswith("raw ") else PREFIX + name


def spoil(case: dict[str, Any], path: Path) -> None:
    """Makes the edits of a case: of tensors, of the index's map, of the files' bytes."""
    index = json.loads((path / INDEX).read_text())
    spoil_tensors(case, path, index["weight_map"])
    for name, file in case.get("remap", {}).items():
        index["weight_map"][key_of(name)] = file
    (path / INDEX).write_text("[" * 200_000 if case.get("nested_index") else json.dumps(index))
    for name, count in case.get("cut", {}).items():
        content = (path / name).read_bytes()
        (path / name).write_bytes(content[:-count])
    for name, text in case.get("overwrite", {}).items():
        (path / name).write_text(text)
    for name in case.get("delete", []):
        (path / name).unlink()


def spoil_tensors(case: dict[str, Any], path: Path, home: dict[str, str]) -> None:
    files = {f.name: load_file(f) for f in sorted(path.glob("*.safetensors"))}
    for name in case.get("drop", []):
        del files[home.pop(key_of(name))][key_of(name)]
    for name, shape in case.get("add", {}).items():
        home[key_of(name)] = "model-00001-of-00003.safetensors"
        files["model-00001-of-00003.safetensors"][key_of(name)] = torch.zeros(shape)
    for name, shape in case.get("reshape", {}).items():
        tensors = files[home[key_of(name)]]
        flat = tensors[key_of(name)].flatten()[: math.prod(shape)]
        tensors[key_of(name)] = flat.reshape(shape).clone()
    for name, dtype in case.get("retype", {}).items():
        assert dtype == "BF16"
        tensors = files[home[key_of(name)]]
        tensors[key_of(name)] = tensors[key_of(name)].to(torch.bfloat16)
    for name, tensors in files.items():
        save_file(tensors, path / name)


@pytest.mark.parametrize("case", PROBLEMS, ids=lambda c: c["name"])
def test_a_spoiled_checkpoint_is_refused_with_every_reason(
    case: dict[str, Any], three_files: Path, tmp_path: Path
) -> None:
    path = tmp_path / "spoiled"
    shutil.copytree(three_files, path)
    load_weights(path, tiny())  # the copy is sound
    spoil(case, path)
    with pytest.raises(InputError) as caught:
        load_weights(path, tiny())
    lines = [str(p) for p in caught.value.problems]
    assert all("\x1b" not in line for line in lines)
    for part, line in zip(case["problems"], lines, strict=not case.get("only_first")):
        assert part in line


def test_a_long_list_of_problems_is_cut_and_counted(three_files: Path) -> None:
    with pytest.raises(InputError) as caught:
        load_weights(three_files, mini())
    *listed, last = caught.value.problems
    assert len(listed) == 40
    assert last.where == "and"
    assert int(last.saw.split()[0]) > 100


def test_a_path_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="absent: saw no such file or directory"):
        load_weights(tmp_path / "absent", tiny())


def test_values_behind_the_live_part_of_a_log_are_refused(
    three_files: Path, tmp_path: Path
) -> None:
    tensors = {k: t for f in three_files.glob("*.safetensors") for k, t in load_file(f).items()}
    key = f"{PREFIX}model.layers.2.self_attn.A_log"
    tensors[key][4] = 1.0
    save_file(tensors, tmp_path / SINGLE)
    with pytest.raises(
        InputError, match=r"layers\.2\.self_attn\.A_log: saw values after the first 4"
    ):
        load_weights(tmp_path, tiny(), 4, 1)


def test_a_log_is_stored_with_zeros_and_held_without(three_files: Path) -> None:
    for file in three_files.glob("*.safetensors"):
        for key, value in load_file(file).items():
            if key.endswith("A_log"):
                assert value.shape == (16,)
                assert value[4:].tolist() == [0.0] * 12
                assert (value[:4] != 0).all()
    attention = load_weights(three_files, tiny(), 4, 3).layers[0].attention
    assert isinstance(attention, KdaWeights)
    assert attention.a_log.shape == (1,)


def test_weights_that_do_not_fit_are_not_written(
    tiny_weights: ModelWeights, tmp_path: Path
) -> None:
    wrong = replace(tiny_weights, norm=tiny_weights.norm.float())
    with pytest.raises(ValueError, match=r"model\.norm\.weight: saw torch\.float32"):
        save_checkpoint(wrong, tmp_path, tiny())
    with pytest.raises(ValueError, match="0 shards"):
        save_checkpoint(tiny_weights, tmp_path, tiny(), 0)
    assert not list(tmp_path.glob("*.safetensors"))

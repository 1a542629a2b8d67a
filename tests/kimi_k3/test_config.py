# SPDX-License-Identifier: Apache-2.0
"""The configuration is the published one, refuses what it can not compute, and gives its shapes."""

import copy
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given

from fasttrack.errors import InputError
from kimi_k3.config import PRESETS, K3Config, full, mini, named, tiny, tiny16
from tests.kimi_k3.builders import configs

CASES = Path(__file__).resolve().parents[1] / "cases/kimi_k3"
PUBLISHED = CASES / "published-config.json"
PROBLEMS = yaml.safe_load((CASES / "config-problems.yaml").read_text("utf-8"))


def published() -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(PUBLISHED.read_text("utf-8"))
    return parsed


def test_the_published_file_is_the_full_configuration() -> None:
    assert K3Config.from_hf(published()) == full()
    assert named(str(PUBLISHED)) == full()


def test_the_text_part_alone_is_read_alike() -> None:
    assert K3Config.from_hf(published()["text_config"]) == full()


@given(configs())
def test_every_configuration_survives_its_published_form(config: K3Config) -> None:
    assert K3Config.from_hf(json.loads(json.dumps(config.to_hf()))) == config


@pytest.mark.parametrize("case", PROBLEMS, ids=lambda c: c["name"])
def test_a_configuration_is_refused_with_every_reason(case: dict[str, Any]) -> None:
    config = copy.deepcopy(published())
    for path, value in case.get("set", {}).items():
        holder, key = parent(config, path)
        holder[key] = value
    for path in case.get("drop", []):
        holder, key = parent(config, path)
        del holder[key]
    with pytest.raises(InputError) as caught:
        K3Config.from_hf(config)
    prefix = "" if case.get("ours") else "config.json: "
    assert [str(p) for p in caught.value.problems] == [prefix + p for p in case["problems"]]


def parent(config: dict[str, Any], path: str) -> tuple[dict[str, Any], str]:
    *holders, key = path.split(".")
    for name in holders:
        config = config[name]
    return config, key


def test_fields_that_contradict_each_other_are_all_named() -> None:
    with pytest.raises(InputError) as caught:
        replace(tiny(), kda_layers=(2, 1, 9), dense_layers=7, a_log_padding=3, mx_group=64)
    assert [p.where.removeprefix("config.") for p in caught.value.problems] == [
        "kda_layers",
        "kda_layers",
        "dense_layers",
        "a_log_padding",
        "mx_group",
    ]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 0.0, -1.0, True, "4"])
def test_a_number_that_is_none_is_refused(value: object) -> None:
    with pytest.raises(InputError, match=r"config\.situ_beta"):
        replace(tiny(), situ_beta=value)  # type: ignore[arg-type]


def test_hostile_files_are_refused_in_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    for content in (b"", b"[" * 100_000, b"\xff\xfe", b"[]", b'{"text_config": []}'):
        file.write_bytes(content)
        with pytest.raises(InputError):
            named(str(file))
    with pytest.raises(InputError, match="full, tiny, tiny16, mini, or a file"):
        named("tiny32")
    for field, value in (("num_hidden_layers", 2**60), ("rms_norm_eps", 10**400)):
        file.write_text(json.dumps({**tiny().to_hf(), field: value}))
        with pytest.raises(InputError):
            named(str(file))


def test_a_directory_with_a_configuration_names_it(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(mini().to_hf()))
    assert named(str(tmp_path)) == mini()


def test_the_full_model_has_the_published_layers() -> None:
    c = full()
    assert c.mla_layers == (*range(3, 92, 4), 92)
    assert len(c.kda_layers) == 69
    assert [n for n in range(93) if c.writes_block(n)] == [0, 12, 24, 36, 48, 60, 72, 84]
    assert c.num_blocks == 8
    assert [c.num_saved_blocks(n) for n in (0, 1, 12, 13, 92, 93)] == [0, 1, 1, 2, 8, 8]
    assert [n for n in range(93) if c.is_dense(n)] == [0]


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_blocks_are_counted_as_the_depth_loop_saves_them(name: str) -> None:
    c = PRESETS[name]()
    saved = 0
    for layer in range(c.num_layers):
        assert c.num_saved_blocks(layer) == saved
        saved += c.writes_block(layer)
    assert c.num_saved_blocks(c.num_layers) == c.num_blocks == saved


def test_derived_widths_of_the_full_model_are_those_of_the_checkpoint() -> None:
    c = full()
    assert (c.kda_width, c.q_b_width, c.kv_b_width, c.mla_width) == (12288, 18432, 24576, 12288)
    assert (c.kv_row, c.conv_channels, c.conv_window(7)) == (576, 36864, 10)
    assert (c.latent_bytes, c.latent_groups, c.expert_bytes, c.expert_groups) == (
        1792,
        112,
        1536,
        96,
    )
    assert c.mla_softmax_scale == pytest.approx(192**-0.5, rel=1e-15)
    assert c.kda_scale == pytest.approx(128**-0.5, rel=1e-15)


def test_the_small_models_are_those_of_the_design() -> None:
    assert tiny().mla_layers == tiny16().mla_layers == mini().mla_layers == (3, 5)
    assert (tiny16().kda_num_heads, tiny16().mla_num_heads) == (16, 16)
    assert tiny16().moe_intermediate_size == 512
    assert tiny16() == replace(
        tiny(),
        kda_num_heads=16,
        mla_num_heads=16,
        a_log_padding=32,
        moe_intermediate_size=512,
        min_expert_partition=32,
    )


def test_shapes_are_known_without_torch() -> None:
    code = (
        "import sys, kimi_k3, kimi_k3.config, kimi_k3.resident, kimi_k3.cli.config;"
        "sys.exit(bool({'torch', 'numpy', 'safetensors'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

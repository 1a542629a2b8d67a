# SPDX-License-Identifier: Apache-2.0
"""A rank holds what the specification's table says, and all ranks together hold everything once."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fasttrack.errors import InputError
from kimi_k3.activations import Load
from kimi_k3.config import K3Config, full, mini, tiny, tiny16
from kimi_k3.resident import resident
from kimi_k3.sharding import COLUMNS, ROWS, WHOLE, Sharding, Split
from kimi_k3.tensors import layer_tensors, model_tensors
from tests.kimi_k3.builders import configs

CASES = Path(__file__).resolve().parents[1] / "cases/kimi_k3"
TABLE = yaml.safe_load((CASES / "rank-shapes.yaml").read_text("utf-8"))


@pytest.mark.parametrize(("column", "tp"), [(0, 8), (1, 16)])
@pytest.mark.parametrize("rank", [0, 3])
def test_widths_are_those_of_the_specification(column: int, tp: int, rank: int) -> None:
    sharding = Sharding(full(), tp, rank)
    saw = {name: getattr(sharding, name) for name in TABLE["widths"]}
    assert saw == {name: row[column] for name, row in TABLE["widths"].items()}


@pytest.mark.parametrize(("column", "tp"), [(0, 8), (1, 16)])
def test_shapes_are_those_of_the_specification(column: int, tp: int) -> None:
    shapes = {t.name: list(t.shape) for t in resident(Sharding(full(), tp, tp - 1), Load())}
    saw = {name: shapes.get(name) for name in TABLE["tensors"]}
    assert saw == {name: row[column] for name, row in TABLE["tensors"].items()}


@given(data=st.data(), tp=st.sampled_from([1, 2, 3, 4]))
def test_the_parts_of_all_ranks_tile_every_tensor(data: st.DataObject, tp: int) -> None:
    config = data.draw(configs(tp))
    tensors = [
        *model_tensors(config),
        *(t for layer in range(config.num_layers) for t in layer_tensors(config, layer)),
    ]
    for tensor in tensors:
        parts = [Sharding(config, tp, rank).part(tensor.live, tensor.split) for rank in range(tp)]
        axis = tensor.split.axis
        if axis is None:
            assert {p.shape for p in parts} == {tensor.live}
            continue
        covered = [index for p in parts for index in range(p.start, p.stop)]
        assert covered == list(range(tensor.live[axis]))
        for p in parts:
            assert p.live[axis] == p.stop - p.start
            assert p.shape[axis] >= p.live[axis]
            assert p.shape[axis] == p.live[axis] or tensor.is_expert


def test_a_slice_starts_where_the_ranks_before_it_end() -> None:
    sharding = Sharding(full(), 16, 5)
    assert (sharding.part((163840, 7168), ROWS).start, sharding.vocab_start) == (51200, 51200)
    assert sharding.part((7168, 12288), COLUMNS).start == 5 * 768
    assert sharding.part((3584, 1536), Split(1, 2)).start == 5 * 96
    assert sharding.part((3584, 96), Split(1, 32)).start == 5 * 6
    assert sharding.part((7168,), WHOLE).axis is None


@pytest.mark.parametrize(
    ("config", "tps"),
    [
        (full(), [1, 2, 4, 8, 16]),
        (tiny(), [1, 2, 4]),
        (tiny16(), [1, 8, 16]),
        (mini(), [1, 2, 4, 8]),
    ],
    ids=["full", "tiny", "tiny16", "mini"],
)
def test_each_model_divides_as_the_design_promises(config: K3Config, tps: list[int]) -> None:
    for tp in tps:
        assert Sharding(config, tp, tp - 1, dcp=tp).kda_heads * tp == config.kda_num_heads


def test_a_padded_expert_slice_is_whole_scale_groups() -> None:
    assert Sharding(tiny(), 4, 0).expert_width == 32
    assert Sharding(tiny(), 4, 0).expert_partition == 64
    assert Sharding(tiny(), 4, 0).w2_groups == 2
    assert (
        Sharding(tiny16(), 16, 0).expert_partition == Sharding(tiny16(), 16, 0).expert_width == 32
    )


def test_every_reason_against_a_division_is_given() -> None:
    with pytest.raises(InputError) as caught:
        Sharding(tiny(), 3, 3, 2)
    text = str(caught.value)
    for part in (
        "--rank: saw 3; want 0 to 2",
        "--dcp: saw 2; want 1 or the value of --tp, 3",
        "a divisor of hidden_size 128",
        "a divisor of kda_num_heads 4",
        "a divisor of mla_num_heads 4",
        "a divisor of vocab_size 512",
        "a divisor of 4, the scale groups of moe_intermediate_size",
    ):
        assert part in text
    with pytest.raises(InputError, match="--tp: saw 0"):
        Sharding(tiny(), 0, 0)


@given(tokens=st.integers(0, 10_000), dcp=st.sampled_from([1, 4]))
def test_context_ranks_share_the_tokens_of_a_cache(tokens: int, dcp: int) -> None:
    held = Sharding(tiny(), 4, 0, dcp).cached_tokens(tokens)
    assert held * dcp >= tokens
    assert (held - 1) * dcp < tokens

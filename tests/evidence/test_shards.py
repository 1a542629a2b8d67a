# SPDX-License-Identifier: Apache-2.0
"""How cells are divided among machines."""

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasttrack.errors import InputError
from fasttrack.evidence.plan import PlannedCell
from fasttrack.evidence.shards import MAX_SHARDS, Shard, divided, machine_of
from fasttrack.evidence.subject import ANYWHERE, hardware_of
from fasttrack.manifest.cells import cell
from fasttrack.vocabulary import Kind


@st.composite
def cells(draw: st.DrawFn) -> list[PlannedCell]:
    drawn = st.tuples(
        st.sampled_from(["comm", "kda"]),
        st.sampled_from([Kind.KERNEL_TEST, Kind.STRESS, Kind.SYNC_AUDIT]),
        st.sampled_from(["cpu", "gb300", "h200"]),
    )
    return [
        PlannedCell(
            kind=kind,
            region="r",
            values={"unit": unit, "hardware": hardware, "rows": i},
            unit=unit,
            tests=("tests/t.py",),
            seeds=(1,),
        )
        for i, (unit, kind, hardware) in enumerate(draw(st.lists(drawn, max_size=40)))
    ]


ARCHS = {"cpu": "x86_64", "gb300": "sm_103a", "h200": "sm_90a"}


def places(found: Sequence[PlannedCell]) -> set[str]:
    """The kinds of machine of some cells; what any can show is for the processor, if it occurs."""
    named = {hardware_of(one.cell()) for one in found}
    return named - {ANYWHERE} if "cpu" in named else named


@given(cells(), st.integers(1, 12))
def test_every_cell_is_in_exactly_one_shard(found: list[PlannedCell], count: int) -> None:
    dealt = [one for shard in divided(found, ARCHS, count) for one in shard]
    assert sorted(one.cell() for one in dealt) == sorted(one.cell() for one in found)


@given(cells(), st.integers(1, 12))
def test_the_same_cells_are_divided_the_same_way(found: list[PlannedCell], count: int) -> None:
    assert divided(found, ARCHS, count) == divided([*found], ARCHS, count)
    assert len(divided(found, ARCHS, count)) == count


@given(cells(), st.integers(4, 12))
def test_a_shard_needs_one_kind_of_machine_when_there_are_enough(
    found: list[PlannedCell], count: int
) -> None:
    assert all(len(places(shard)) <= 1 for shard in divided(found, ARCHS, count))


@given(cells(), st.integers(1, 12))
def test_shards_of_one_hardware_differ_by_at_most_one_cell_of_each_unit_and_kind(
    found: list[PlannedCell], count: int
) -> None:
    shards = divided(found, ARCHS, count)
    machines = places(found)
    for place in machines if len(machines) <= count else ():
        both = {place, ANYWHERE} if place == "cpu" else {place}
        own = [shard for shard in shards if shard and places(shard) <= both]
        assert sum(len(s) for s in own) == sum(hardware_of(c.cell()) in both for c in found)
        sizes = [len(shard) for shard in own]
        assert max(sizes) - min(sizes) <= 1
        tables = [Counter((one.unit, one.kind) for one in shard) for shard in own]
        for key in set().union(*tables):
            assert max(t[key] for t in tables) - min(t[key] for t in tables) <= 1


@given(cells(), st.integers(4, 12))
def test_no_shard_is_larger_than_its_fair_share_of_the_fullest_hardware(
    found: list[PlannedCell], count: int
) -> None:
    sizes = Counter(hardware_of(one.cell()) for one in found)
    if sizes["cpu"]:
        sizes["cpu"] += sizes.pop(ANYWHERE, 0)
    sizes = +sizes
    best = min(
        (
            max(-(-size // share) for size, share in zip(sizes.values(), shares, strict=True))
            for shares in compositions(count, len(sizes))
        ),
        default=0,
    )
    assert max(len(shard) for shard in divided(found, ARCHS, count)) == best


@given(cells(), st.integers(1, 12), st.integers(0, 3))
def test_a_shard_is_measured_by_a_machine_of_the_plan_where_that_can_show_it(
    found: list[PlannedCell], count: int, anywhere: int
) -> None:
    archs = {"acpu": "aarch64", **ARCHS}
    refusals = [
        PlannedCell(
            kind=Kind.REFUSAL,
            region="r",
            values={"bound": "rows_max", "rows": i},
            unit="gate-files",
            tests=("tests/t.py",),
            seeds=(),
        )
        for i in range(anywhere)
    ]
    every = [*found, *refusals]
    named = {hardware_of(one.cell()) for one in every} - {ANYWHERE}
    for shard in filter(None, divided(every, archs, max(count, 4))):
        machine = machine_of(shard, every, archs)
        own = {hardware_of(one.cell()) for one in shard} - {ANYWHERE}
        assert own <= {machine}
        if "cpu" in named:
            assert machine in named
        elif not own:
            assert machine == "acpu"


def compositions(total: int, parts: int) -> list[tuple[int, ...]]:
    """Every way to write `total` as that many positive summands."""
    if parts == 0:
        return []
    if parts == 1:
        return [(total,)]
    return [
        (first, *rest)
        for first in range(1, total - parts + 2)
        for rest in compositions(total - first, parts - 1)
    ]


@pytest.mark.parametrize(
    ("kind", "values", "wanted"),
    [
        (Kind.KERNEL_TEST, {"hardware": "h200"}, "h200"),
        (Kind.STRESS, {"hardware": "h200"}, "h200"),
        (Kind.MODEL_EVAL, {"hardware": "h200"}, "h200"),
        (Kind.PERFORMANCE, {"ours.hardware": "h200", "baseline.hardware": "b200"}, "h200"),
        (Kind.SYNC_AUDIT, {"arch": "sm_90a"}, ANYWHERE),
        (Kind.REFUSAL, {"hardware": "h200"}, ANYWHERE),
    ],
)
def test_the_kind_tells_where_a_cell_is_measured(
    kind: Kind, values: dict[str, str | int], wanted: str
) -> None:
    assert hardware_of(cell(kind, "r", values)) == wanted


@pytest.mark.parametrize("text", ["1/1", "3/7", f"{MAX_SHARDS}/{MAX_SHARDS}"])
def test_a_shard_is_written_as_it_is_read(text: str) -> None:
    assert str(Shard.parse(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "0/1",
        "2/1",
        "1/0",
        "-1/2",
        "1/2/3",
        " 1/2",
        "1/99999",
        "\u0661/\u0662",
        "a/b",
        "1/2\n",
    ],
)
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="1/4"):
        Shard.parse(text)

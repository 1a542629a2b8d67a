# SPDX-License-Identifier: Apache-2.0
"""Orders between launches, against a second formulation: constraints between moments in time.

A launch has three moments: it starts, it first touches memory (when its wait is over, if it waits),
and it is complete. Edges are inequalities between moments. Two launches are in order if and only if
the inequalities make one complete before the other first touches memory.
"""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasttrack.audit.contract import Contract, Neighbour
from fasttrack.audit.launches import (
    Access,
    Edge,
    Hazard,
    Launch,
    Recorded,
    check_sequence,
    edges_of,
    hazards,
)
from fasttrack.audit.lint import check_contract
from fasttrack.audit.neighbours import neighbour_hazards
from fasttrack.errors import InputError

RECORD = "launches.yaml"


def _touched(names: str) -> tuple[Access, ...]:
    return tuple(Access(buffer=name, start=0, size=16) for name in names)


def _launch(
    kernel: str, after: list[tuple[int, bool]], reads: str = "", writes: str = ""
) -> Launch:
    edges = tuple(Edge(launch=on, programmatic=early) for on, early in after)
    return Launch(kernel=kernel, after=edges, reads=_touched(reads), writes=_touched(writes))


def _on(stream: str, kernel: str, early: bool, reads: str = "", writes: str = "") -> Launch:
    return Launch(
        kernel=kernel, stream=stream, programmatic=early,
        reads=_touched(reads), writes=_touched(writes),
    )  # fmt: skip


def _told(found: tuple[Hazard, ...]) -> list[tuple[str, int, int, str, int | None]]:
    return [(one.kind, one.first, one.second, one.buffer, one.middle) for one in found]


def test_a_chain_of_waiting_kernels_is_in_order() -> None:
    chain = [
        _launch("a", [], writes="x"),
        _launch("b", [(0, True)], reads="x", writes="y"),
        _launch("c", [(1, True)], reads="xy", writes="x"),
    ]
    assert hazards(chain, dict.fromkeys("abc", True), RECORD) == ()


def test_a_middle_kernel_that_does_not_wait_breaks_the_chain() -> None:
    chain = [
        _launch("a", [], writes="x"),
        _launch("b", [(0, True)], writes="y"),
        _launch("c", [(1, True)], reads="x"),
    ]
    found = hazards(chain, {"a": True, "b": False, "c": True}, RECORD)
    assert _told(found) == [("RAW", 0, 2, "x", 1)]
    assert found[0].source == RECORD
    assert found[0].why == (
        "launch 1 (b) between them does not surely wait, so that launch 2 (c) may run while "
        "launch 0 (a) does"
    )


def test_a_full_edge_after_a_kernel_that_does_not_wait_does_not_mend_the_chain() -> None:
    chain = [
        _launch("a", [], reads="x"),
        _launch("b", [(0, True)]),
        _launch("c", [(1, False)], writes="x"),
    ]
    assert _told(hazards(chain, {"a": True, "c": True}, RECORD)) == [("WAR", 0, 2, "x", 1)]


def test_a_kernel_that_starts_early_and_does_not_wait_races_with_its_neighbour() -> None:
    chain = [_launch("a", [], reads="s"), _launch("b", [(0, True)], writes="s")]
    (found,) = hazards(chain, {"a": True, "b": False}, RECORD)
    assert found.why == "launch 1 (b) starts early and does not surely wait for launch 0 (a)"


def test_streams_without_an_event_between_them_are_not_in_order() -> None:
    both = [_on("main", "a", False, writes="x"), _on("side", "b", False, writes="x")]
    (found,) = hazards(both, {"a": True, "b": True}, RECORD)
    assert (found.kind, found.why) == ("WAW", "nothing makes launch 1 (b) wait for launch 0 (a)")


def test_an_event_puts_two_streams_in_order() -> None:
    side = Launch(
        kernel="b", stream="side", programmatic=False, writes=_touched("x"),
        after=(Edge(launch=0, programmatic=False),),
    )  # fmt: skip
    assert hazards([_on("main", "a", False, writes="x"), side], {}, RECORD) == ()


def test_a_stream_is_an_edge_to_the_launch_before_it_there() -> None:
    launches = [
        _on("main", "a", False), _on("side", "b", True), _launch("c", [(0, True)]),
        _on("main", "d", True), _on("side", "e", False),
    ]  # fmt: skip
    assert [[(one.launch, one.programmatic) for one in edges] for edges in edges_of(launches)] == [
        [], [], [(0, True)], [(0, True)], [(1, False)],
    ]  # fmt: skip


def test_only_bytes_that_both_touch_are_a_conflict() -> None:
    halves = [
        Launch(kernel="a", writes=(Access(buffer="x", start=start, size=16),)) for start in (0, 16)
    ]
    assert hazards(halves, {}, RECORD) == ()


@pytest.mark.parametrize(
    ("launch", "says"),
    [
        (_launch("a", [(0, False)]), r"sequence\[0\].after: saw launch 0; want one before 0"),
        (_launch("a", [(3, True)]), r"sequence\[0\].after: saw launch 3"),
        (Launch(kernel="a", stream="main"), r"\[0\]: saw `stream` without `programmatic`"),
        (Launch(kernel="a", programmatic=True), r"\[0\]: saw `programmatic` without `stream`"),
    ],
)
def test_a_launch_that_contradicts_itself_is_bad_input(launch: Launch, says: str) -> None:
    with pytest.raises(InputError, match=says):
        check_sequence(Recorded(launches=1, sequence=(launch,)), RECORD)


def test_two_edges_to_one_launch_are_bad_input() -> None:
    twice = _launch("b", [(0, False), (0, True)])
    with pytest.raises(InputError, match=r"sequence\[1\].after: saw a launch twice"):
        check_sequence(Recorded(launches=1, sequence=(_launch("a", []), twice)), RECORD)


@dataclass
class Moments:
    """Moments in time, and which are surely not later than which."""

    later: dict[tuple[str, int], set[tuple[str, int]]]

    def order(self, first: tuple[str, int], second: tuple[str, int]) -> None:
        self.later.setdefault(first, set()).add(second)

    def after(self, moment: tuple[str, int]) -> set[tuple[str, int]]:
        seen, todo = {moment}, [moment]
        while todo:
            new = self.later.get(todo.pop(), set()) - seen
            seen |= new
            todo.extend(new)
        return seen


def _expected(launches: list[Launch], waits: list[bool]) -> set[tuple[str, int, int, str]]:
    moments = Moments({})
    last: dict[str, int] = {}
    for at, launch in enumerate(launches):
        moments.order(("start", at), ("touch", at))
        moments.order(("touch", at), ("end", at))
        before = {edge.launch: edge.programmatic for edge in launch.after}
        if launch.stream is not None and launch.stream in last:
            on = last[launch.stream]
            before[on] = before.get(on, True) and bool(launch.programmatic)
        if launch.stream is not None:
            last[launch.stream] = at
        for on, early in before.items():
            if not early:
                moments.order(("end", on), ("start", at))
            elif waits[at]:
                moments.order(("end", on), ("touch", at))
    return {
        (kind, first, second, buffer)
        for first in range(len(launches))
        for second in range(first + 1, len(launches))
        if ("touch", second) not in moments.after(("end", first))
        for kind, one, two in (("RAW", 1, 0), ("WAR", 0, 1), ("WAW", 1, 1))
        for buffer in {x.buffer for x in (launches[first].reads, launches[first].writes)[one]}
        & {x.buffer for x in (launches[second].reads, launches[second].writes)[two]}
    }


@st.composite
def _sequences(draw: st.DrawFn) -> tuple[list[Launch], dict[str, bool]]:
    count = draw(st.integers(2, 6))
    launches = []
    for at in range(count):
        before = draw(st.lists(st.integers(0, at - 1), unique=True, max_size=2)) if at else []
        stream = draw(st.sampled_from((None, "main", "side")))
        launches.append(
            Launch(
                kernel=f"k{at}",
                stream=stream,
                programmatic=None if stream is None else draw(st.booleans()),
                after=tuple(Edge(launch=on, programmatic=draw(st.booleans())) for on in before),
                reads=_touched(draw(st.text("xyz", max_size=2))),
                writes=_touched(draw(st.text("xyz", max_size=1))),
            )
        )
    return launches, {f"k{at}": draw(st.booleans()) for at in range(count)}


@given(_sequences())
def test_hazards_are_the_pairs_that_no_inequality_between_moments_orders(
    case: tuple[list[Launch], dict[str, bool]],
) -> None:
    launches, waits = case
    found = hazards(launches, waits, RECORD)
    assert {one[:4] for one in _told(found)} == _expected(launches, list(waits.values()))


CONTRACT = {
    "contract": 1, "kernel": "k", "block": [32, 1, 1], "cluster": 1, "pdl": True,
    "parameters": [
        {"name": "x", "holds": "dynamic"}, {"name": "y", "holds": "out"},
        {"name": "box", "holds": "mailbox", "sentinel": True},
    ],
    "reads": ["x", "box"], "writes": ["y"],
}  # fmt: skip


def _contract(*neighbours: Neighbour, pdl: bool = True) -> Contract:
    rest = {"neighbours": [one.model_dump(mode="json") for one in neighbours], "pdl": pdl}
    contract = Contract.model_validate({**CONTRACT, **rest}, strict=False)
    check_contract(contract, "k.yaml")
    return contract


def _between(contract: Contract, waits: bool) -> list[tuple[str, int, int, str, int | None]]:
    return _told(tuple(neighbour_hazards(contract, waits, "k.yaml")))


def test_a_writer_two_launches_before_is_not_over_if_the_one_between_does_not_wait() -> None:
    far = Neighbour(distance=-2, name="a", writes=("x",), waits=True)
    for waits, told in ((False, [("RAW", -2, 0, "x", -1)]), (True, [])):
        near = Neighbour(distance=-1, name="b", waits=waits)
        assert _between(_contract(far, near), waits=True) == told


def test_a_next_launch_that_writes_what_is_still_read_must_wait() -> None:
    for waits, told in ((False, [("WAR", 0, 1, "x", None)]), (True, [])):
        after = Neighbour(distance=1, name="c", writes=("x",), waits=waits)
        assert _between(_contract(after), waits=True) == told


def test_a_kernel_that_does_not_wait_breaks_the_order_with_both_sides() -> None:
    before = Neighbour(distance=-1, name="b", reads=("y",), waits=True)
    assert _between(_contract(before), waits=False) == [("WAR", -1, 0, "y", None)]
    assert _between(_contract(before, pdl=False), waits=False) == []


def test_memory_that_flags_order_is_none_of_the_launches_business() -> None:
    before = Neighbour(distance=-1, name="b", writes=("box",), waits=False)
    assert _between(_contract(before), waits=False) == []


def test_hazards_between_neighbours_alone_are_not_this_kernel_s() -> None:
    first = Neighbour(distance=-2, name="a", writes=("y",), waits=True)
    second = Neighbour(distance=-1, name="b", writes=("y",), waits=False)
    assert _between(_contract(first, second), waits=True) == [("WAW", -2, 0, "y", -1)]


@st.composite
def _around(draw: st.DrawFn) -> tuple[Contract, bool]:
    some = st.sampled_from((("x",), ("y",), ("x", "y")))
    buffers = st.just(()) | some
    distances = {0, *draw(st.sampled_from(((), (-1,), (-1, -2))))}
    distances |= {*draw(st.sampled_from(((), (1,), (1, 2))))}
    neighbours = [
        Neighbour(
            distance=at,  # type: ignore[arg-type]
            name=f"n{at}",
            reads=draw(some if abs(at) == 2 else buffers),
            writes=draw(buffers),
            waits=draw(st.booleans()),
        )
        for at in sorted(distances - {0})
    ]
    return _contract(*neighbours, pdl=draw(st.booleans())), draw(st.booleans())


@given(_around())
def test_a_contract_s_neighbours_are_launches_in_one_stream(case: tuple[Contract, bool]) -> None:
    contract, waits = case
    around = {one.distance: one for one in contract.neighbours}
    places = sorted({0, *around})
    launches, waiting = [], []
    for at in places:
        one = around[at] if at else None  # type: ignore[index]
        reads, writes = ("x", "y") if one is None else ("".join(one.reads), "".join(one.writes))
        launches.append(_on("main", f"k{at}", contract.pdl or at != 0, reads, writes))
        waiting.append(waits if one is None else one.waits)
    expected = {
        (kind, places[first], places[second], buffer)
        for kind, first, second, buffer in _expected(launches, waiting)
    }
    told = {one[:4] for one in _between(contract, waits)}
    assert told == {one for one in expected if 0 in one[1:3]}

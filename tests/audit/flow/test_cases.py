# SPDX-License-Identifier: Apache-2.0
"""Listings and what an audit says of them; and that each decision of the analysis matters to one.

A mutant replaces one decision. It must change what is said of some case: a decision that could be
left out is either not tested or not needed.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml

from fasttrack.audit.finding import Verdict
from fasttrack.audit.flow import (
    ahead,
    alike,
    blocks,
    choices,
    conditions,
    divide,
    events,
    facts,
    flags,
    followed,
    groups,
    handoff,
    indices,
    integer,
    mbarriers,
    meetings,
    memory,
    operands,
    staying,
    step,
    together,
    values,
    walk,
)
from fasttrack.audit.flow.meetings import last_of
from fasttrack.audit.flow.values import NOWHERE, UNKNOWN_BASE, Base, Space
from fasttrack.audit.judge import audit
from fasttrack.audit.rules import announced, bulk, dom, fence, met, nc, no_wait, reread, trig, which
from tests.audit.flow.listing import PROLOGUE, contract_of, kernel_of

CASES: list[dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("cases.yaml").read_text("utf-8")
)
_CONTRACT = ("pdl", "cluster", "early_trigger")


def said_of(case: dict[str, Any]) -> tuple[Verdict, list[str]]:
    """The verdict on a case, and the rules that have findings."""
    code = case["code"] if case.get("bare") else PROLOGUE + case["code"]
    contract = contract_of(
        case.get("parameters"), **{key: case[key] for key in _CONTRACT if key in case}
    )
    audited = audit(kernel_of(code, case.get("sizes", (8, 8, 8, 8, 4))), contract, None)
    return audited.verdict, sorted({one.rule for one in audited.findings})


def wanted_of(case: dict[str, Any]) -> tuple[Verdict, list[str]]:
    """What must be said of a case."""
    if "says" not in case:
        return Verdict.PROVED, []
    verdict = Verdict.UNPROVEN if case.get("unproven") else Verdict.VIOLATED
    return verdict, sorted(case["says"])


@pytest.mark.parametrize("case", CASES, ids=[case["it"] for case in CASES])
def test_the_audit_says_of_each_listing_what_is_wrong_with_it(case: dict[str, Any]) -> None:
    assert said_of(case) == wanted_of(case)


def test_names_of_cases_are_unique() -> None:
    names = [case["it"] for case in CASES]
    assert len(names) == len(set(names))


def _nothing(*_: Any, **__: Any) -> frozenset[Any]:
    return frozenset()


def _same_tokens(tokens: frozenset[str], *_: Any) -> frozenset[str]:
    return tokens


def _second(_: Any, tokens: frozenset[str], *__: Any) -> frozenset[str]:
    return tokens


MUTANTS: dict[str, tuple[Any, str, Any]] = {
    "a wait changes nothing": (step, "waited", _same_tokens),
    "a trigger changes nothing": (trig, "after", lambda _, __, things, ___: things),
    "a thread triggers for itself alone": (ahead, "others", lambda *_: 0),
    "a thread that triggers alone triggers for itself": (
        ahead, "others", lambda threads, mask, _: threads.everyone if mask else 0,
    ),
    "a warp that has parted is one": (facts.Facts, "together", range(0x10000)),
    "a warp that has not parted is many": (facts.Facts, "together", ()),
    "no barrier holds those who trigger": (ahead, "holding", lambda *_: {}),
    "a barrier holds those who only arrive": (
        ahead, "holding",
        lambda graph, met: {last_of(graph, key).address: -1 for one in met for key in one.arrive},
    ),
    "a barrier lets nobody go on to the trigger": (ahead, "_behind", lambda *_: 0),
    "all branches are taken alike": (alike.Search, "alike", lambda _: alike.Alike()),
    "no branch is taken alike": (alike.Alike, "in_step", lambda _, found: found),
    "what is written on ways that come together is alike": (
        alike.Search, "_join", lambda *_: None,
    ),
    "where threads have parted, barriers are met in step": (
        alike.Search, "_between", lambda *_: set(),
    ),
    "who goes around a barrier is not ahead": (meetings, "going_around", lambda *_: []),
    "a bulk store is done when it was started": (bulk, "starts", lambda _: False),
    "reading is done": (bulk, "visible", lambda *_: True),
    "every wait is for all groups": (bulk, "finishes", lambda *_: True),
    "no wait is for a group": (bulk, "finishes", lambda *_: False),
    "who ended was met, too": (groups, "_ended", lambda _: 0),
    "nobody is sure to come": (facts.Facts, "sure_to_come", {}),
    "an open bulk store is no matter to whom it meets": (bulk, "left_behind", lambda *_: 0),
    "discarding is a hint": (step, "discarded", lambda *_: iter(())),
    "no number is a distance": (step, "is_distance", lambda _: False),
    "no word in shared memory is a distance": (memory, "is_distance", lambda _: False),
    "no barrier passes anything on": (handoff, "passed_on", _nothing),
    "anybody may hold what a barrier passes on": (
        handoff, "sure_of", lambda found, *_: -1,
    ),
    "a count at a barrier means nothing": (handoff, "everybody_comes", lambda *_: True),
    "all barriers have one number": (
        meetings, "barrier_numbers", lambda _, mask: {0: mask},
    ),
    "threads never part": (meetings, "parting", lambda *_: []),
    "a decided predicate is forgotten": (divide, "refine", lambda *_, **__: None),
    "all conditions are the launch's": (divide, "agreed", lambda *_: True),
    "any branch leaves a spin": (walk, "leaves_spin", lambda *_: True),
    "no branch leaves a spin": (walk, "leaves_spin", lambda *_: False),
    "the first round of a loop is like all others": (walk, "around_loops", _second),
    "who is past the end leaves alone": (meetings, "bounds", lambda *_: {}),
    "who leaves is past the end": (
        meetings, "bounds", lambda context, ended: dict.fromkeys(ended, context.threads.everyone),
    ),
    "the first threads leave last": (staying, "_leave_first", lambda *_, **__: False),
    "no index is too large for its word": (staying._Sum, "carries", False),
    "any index is too large for its word": (facts.Facts, "unwrapped", property(lambda one: one)),
    "a byte of a word is the word": (conditions, "lowest_byte", lambda *_: None),
    "an mbarrier passes on in any phase": (
        walk, "phase_tokens",
        lambda mark, granted, _: frozenset().union(*granted.values()),
    ),
    "all mbarriers are one": (
        mbarriers, "possible", lambda *_: {0x400, 0x408},
    ),
    "bytes to come say nothing": (
        mbarriers, "copies_to_come",
        lambda graph: {key: [frozenset()] * len(n.events) for key, n in graph.nodes.items()},
    ),
    "a join of addresses keeps the first": (values, "join_bases", lambda left, _: left.bases),
    "a selection takes the first": (choices, "selected_bases", lambda left, _: left.bases),
    "a factor is an address": (
        integer, "factor_bases", lambda factors: factors[0].bases | {UNKNOWN_BASE},
    ),
    "a pointer many times is an index": (integer, "scaled_bases", lambda _: NOWHERE),
    "one of two numbers is any number": (choices, "few", lambda *_: None),
    "an index keeps to the parameter that it begins at": (
        operands.Context, "_somewhere",
        lambda _, at: frozenset({Base(Space.TABLE, at)}),
    ),
    "nothing follows from what is decided": (divide, "deduced", lambda *_: None),
    "threads that have parted agree on nothing": (meetings, "contradict", lambda *_: False),
    "an index is an address": (values, "is_soft", lambda _: False),
    "what a pointer in memory points to is no matter": (memory, "pointees", lambda _: NOWHERE),
    "any load acquires": (
        memory, "acquired_tokens", lambda tokens: tokens,
    ),
    "a flag may be read by any load": (memory, "flag_read", lambda *_: None),
    "other conditions do not matter to a flag": (
        walk, "seen", lambda mark: f"flag:{mark.offset}",
    ),
    "a look at a flag passes by a spin whatever it asked": (
        walk, "passes_by", lambda spin, spins: any(one[:2] == spin[:2] for one in spins),
    ),
    "no look at a flag passes by a spin": (walk, "passes_by", lambda *_: False),
    "any vote will do": (indices, "voted_mark", lambda value, _: value.mark),
    "a condition beside a flag's does not matter": (
        conditions, "lone_mark", lambda values: next(one.mark for one in values if one.mark),
    ),
    "copies of later phases count": (mbarriers, "of_this_phase", lambda coming, _: coming),
    "nobody meets at a barrier": (fence, "met", lambda _, things, __: iter(things)),
    "an arrival is a stay": (met, "only_arrives", lambda _: False),
    "all threads come to every barrier": (met, "company", lambda *_: -1),
    "who goes around a barrier meets others there": (fence, "narrowed", _nothing),
    "who is met brings on what it has not met": (
        fence, "handed", lambda _, things, __: things,
    ),
    "nobody need be met before a copy": (fence, "unmet", lambda *_, **__: 0),
    "a copy may come before anything is stored": (fence, "only_threads_store", lambda *_: False),
    "where a store lies is no matter": (fence, "highest", lambda _: None),
    "a loop has one way out": (blocks.Blocks, "has_one_way_out", lambda *_: True),
    "loops that begin at one place are one": (
        blocks.Blocks, "has_one_way_out", lambda *_: False,
    ),
    "one of two ways speaks for both": (events.Event, "passed_by", lambda event, _: event),
    "a flag announces nothing": (announced, "announces", lambda *_: False),
    "a flag announces everything": (announced, "announces", lambda *_: True),
    "what was read is read": (announced, "taken", _nothing),
    "readers meet whoever sets a flag back": (announced, "_apart", lambda *_: iter(())),
    "nobody ends without what should follow": (followed.Followed, "open", lambda *_: 0),
    "nobody who is met comes to what should follow": (followed.Followed, "_sure", lambda *_: 0),
    "all who are met come to what should follow": (followed.Followed, "_sure", lambda *_: -1),
    "an arrival is for nobody": (followed, "_is_awaited", lambda *_: False),
    "no point is before all flags": (announced, "all_pass", _nothing),
    "any number of flags is one": (which, "_several", lambda *_: iter(())),
    "memory of no parameter is no flag": (fence, "untold", lambda *_: iter(())),
    "no kernel sets flags": (which, "sets_flags", lambda _: False),
    "what is static may be a flag": (which, "candidates", lambda facts, event: facts.places(event)),
    "no address has a name": (memory, "spot", lambda *_: None),
    "what one thread sets counts": (met, "counts", lambda _: True),
    "a flag of many is worth all": (
        flags.Flags, "passed", lambda _, token, sure, in_warp: token,
    ),
    "a flag of many is worth nothing": (flags.Flags, "passed", lambda *_, **__: None),
    "one flag of all is enough": (flags.Flags, "wanted", lambda _, offset, token: token),
    "threads that hold other addresses may hold each other's": (values, "apart", lambda *_: ()),
    "what is written under a guard is lost": (walk, "put_back", lambda *_: []),
    "a guard is never decided anew": (walk, "forget", lambda *_: None),
    "threads told apart under a guard part": (walk, "go_alike", lambda *_: False),
    "warps never part": (together, "may_part", lambda *_: False),
    "warps that part stay apart": (together, "_number", lambda _: None),
    "every scope reaches": (fence, "reaches", lambda *_: True),
    "a fence does nothing": (fence, "fenced", lambda things, _: iter(things)),
    "no store meets a copy": (fence, "overlaps", lambda *_: False),
    "what changes does not": (nc, "changes", lambda *_: False),
    "all memory is in time": (dom, "in_time", lambda *_: True),
    "every block waits": (no_wait, "surely_waits", lambda *_: 1),
    "a round is any read": (reread, "rounds", lambda *_: {1, 2, 3}),
}  # fmt: skip


@pytest.mark.parametrize("mutant", MUTANTS)
def test_each_decision_of_the_analysis_matters_to_some_listing(
    mutant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, name, instead = MUTANTS[mutant]
    monkeypatch.setattr(module, name, instead)
    lost = [case["it"] for case in CASES if said_of(case) != wanted_of(case)]
    assert lost, f"no case notices that {mutant}"

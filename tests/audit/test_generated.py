# SPDX-License-Identifier: Apache-2.0
"""Random kernels: what the interpreter sees of them, and what the audit says.

Here are 60, from stored cubins; `python -m tests.audit.generated` compiles and judges thousands,
and `generated.json` keeps what it counted.
"""

import json
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fasttrack.audit.finding import Verdict
from tests.audit.controls.build import pack
from tests.audit.controls.table import ARCHES
from tests.audit.generated import (
    RECORD,
    UNPROVEN,
    Judged,
    compiled,
    counts,
    failures,
    judged,
    keep,
    recorded,
    table,
)
from tests.audit.generator.sample import ARCHIVE, COUNT, DIGEST, SEED, digest, stored
from tests.audit.generator.source import source

RUNS = ((0, 3), (0, 0), (0, 6), (0, -1))
"""As in `interpreter.truth`, without the slow orders."""


@cache
def _judged(arch: str) -> tuple[Judged, ...]:
    return tuple(judged(stored()[arch], source(SEED, COUNT)[1], RUNS))


@pytest.mark.parametrize("arch", ARCHES)
def test_no_random_kernel_is_judged_against_what_it_does(arch: str) -> None:
    found = _judged(arch)
    assert len(found) == COUNT
    assert not failures(list(found))


def test_the_sample_holds_both_kinds_and_no_kernel_that_hangs() -> None:
    counts = Counter(one.truth for arch in ARCHES for one in _judged(arch))
    assert set(counts) == {"stale", "honest"}
    assert min(counts.values()) >= COUNT


def test_the_sample_was_made_by_this_generator() -> None:
    again = "the generator changed: python -m tests.audit.generator build"
    assert DIGEST.read_text(encoding="utf-8").strip() == digest(), again


def test_compiling_the_sample_again_gives_the_stored_bytes() -> None:
    arch = ARCHES[0]
    assert compiled(SEED, COUNT, arch)[0] == stored()[arch]
    assert pack(stored()) == ARCHIVE.read_bytes()


def test_a_seed_gives_the_same_kernels_again_and_another_gives_others() -> None:
    assert source(3, 10) == source(3, 10)
    assert source(3, 10)[0] != source(4, 10)[0]


@pytest.mark.parametrize(
    ("truth", "verdict", "fails"),
    [
        ("stale", Verdict.VIOLATED, False), ("stale", Verdict.PROVED, True),
        ("stale", Verdict.UNPROVEN, True), ("honest", Verdict.PROVED, False),
        ("honest", Verdict.VIOLATED, True),
    ],
)  # fmt: skip
def test_a_contradiction_is_told(truth: str, verdict: Verdict, fails: bool) -> None:
    one = next(one for one in _judged(ARCHES[0]) if one.truth == truth)
    told = failures([replace(one, verdict=verdict)])
    assert bool(told) is fails
    assert not fails or one.kernel.name in told[0]


def test_more_than_a_twentieth_of_a_class_of_honest_kernels_may_not_be_left_unproven() -> None:
    honest = next(one for one in _judged(ARCHES[0]) if one.truth == "honest")
    left = replace(honest, verdict=Verdict.UNPROVEN)
    other = replace(honest, choices=replace(honest.choices, place="elsewhere"))
    assert not failures([left, *[honest] * 19])
    assert len(failures([left, *[honest] * 18])) > 1
    assert failures([left, *[honest] * 18, *[other] * 20]) == [
        f"1 of 19 honest kernels are unproven: place {honest.choices.place}"
    ]


def test_the_table_counts_every_kernel_once_in_all() -> None:
    found = list(_judged(ARCHES[0]))
    rows = [line.split() for line in table(found).splitlines() if line.startswith("all ")]
    assert sum(int(number) for row in rows for number in row[2:]) == COUNT


def test_a_record_keeps_one_entry_for_a_seed_and_an_architecture(tmp_path: Path) -> None:
    record = tmp_path / "record.json"
    found = {arch: list(_judged(arch)) for arch in ARCHES}
    for arch in reversed(ARCHES):
        keep(record, recorded(found[arch], 5))
    keep(record, recorded(found[ARCHES[0]][:10], 5))
    keep(record, recorded(found[ARCHES[0]], 4))
    entries = json.loads(record.read_text(encoding="utf-8"))
    assert [(one["seed"], one["arch"]) for one in entries] == [
        (4, ARCHES[0]), *((5, arch) for arch in ARCHES)
    ]  # fmt: skip
    assert [one["kernels"] for one in entries] == [COUNT, 10, COUNT, COUNT]
    assert entries[0]["counts"] == counts(found[ARCHES[0]])


RECORDED: list[dict[str, Any]] = json.loads(RECORD.read_text(encoding="utf-8"))


def test_thousands_were_judged_on_every_architecture_from_two_seeds() -> None:
    judged_ = {(one["seed"], one["arch"]): one["kernels"] for one in RECORDED}
    assert judged_ == {
        **{(0, arch): 2000 for arch in ARCHES}, **{(1, arch): 1000 for arch in ARCHES}
    }  # fmt: skip


@pytest.mark.parametrize("entry", RECORDED, ids=lambda one: f"{one['seed']}-{one['arch']}")
def test_of_thousands_every_stale_one_is_violated_and_hardly_an_honest_one_unproven(
    entry: dict[str, Any],
) -> None:
    assert entry["wrong"] == 0
    for by_truth in entry["counts"].values():
        stale, honest = by_truth.get("stale", {}), by_truth.get("honest", {})
        assert sum(stale.values()) == stale.get("violated", 0)
        assert honest.get("violated", 0) == 0
        assert honest.get("unproven", 0) <= UNPROVEN * sum(honest.values())
    whole = entry["counts"]["all"]
    assert sum(sum(one.values()) for one in whole.values()) == entry["kernels"]
    assert min(sum(whole[real].values()) for real in ("stale", "honest")) > entry["kernels"] / 4

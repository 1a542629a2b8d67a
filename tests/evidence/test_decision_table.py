# SPDX-License-Identifier: Apache-2.0
"""The answer for a cell from a second formulation: a decision table over drawn statements."""

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from itertools import product
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from fasttrack.evidence.coverage import (
    GRACE_DAYS,
    Evidence,
    covered_by,
)
from fasttrack.evidence.predicates.common import (
    TestResults,
)
from fasttrack.evidence.statement import Statement
from fasttrack.evidence.terms import Terms
from fasttrack.evidence.trust import Signatures, judge
from tests.evidence.covering import (
    BOUNDARY,
    KDA,
    MANIFEST_NOW,
    POLICY_NOW,
    answer,
    inputs,
    policy,
    told,
)
from tests.evidence.keys import DAY, key, trust
from tests.evidence.strategies import digest

KEYS = ("good", "revoked", "expired", "forged", "unknown", "none-in-range")
AGES = (0, GRACE_DAYS, GRACE_DAYS + 1, 90, 91)
DRAWN = st.fixed_dictionaries(
    {
        "unit": st.sampled_from(["kda", "kda", "mla"]),
        "files": st.sampled_from(["a", "a", "c"]),
        "tests": st.sampled_from(["b", "b", "c"]),
        "boundary": st.sampled_from(["9", "9", "8", "7"]),
        "key": st.sampled_from((*KEYS, *("good",) * 5)),
        "outcome": st.sampled_from(["passed", "passed", "failed", "skipped"]),
        "device": st.sampled_from(["NVIDIA H200", "NVIDIA H200", "NVIDIA H100"]),
        "torch": st.sampled_from(["2.11.0", "2.11.0", "2.10.0"]),
        "seeds": st.sampled_from([3, 3, 5, 2]),
        "age": st.sampled_from((*AGES, -1)),
    }
)
VALID = {"valid_from": date(2020, 1, 1), "valid_until": date(2030, 1, 1)}
KEYRING = trust(
    key("good", **VALID),
    key("revoked", **VALID, revoked=DAY),
    key("expired", valid_from=date(2020, 1, 1), valid_until=date(2020, 2, 1)),
    key("forged", **VALID),
    key("none-in-range", **(VALID | {"hardware": ("cpu",)})),
)
ORDER = [
    *("covered", "boundary-changed", "unaudited", "other-code", "stale", "too-old", "failed"),
    *("skipped", "wrong-device", "wrong-toolchain", "untrusted", "below-floor", "wrong-unit"),
    "missing",
]


def expected(drawn: Mapping[str, Any], boundary: str) -> tuple[bool, str]:
    """Whether a statement covers, and its status: the first row of the table that applies."""
    grace = boundary == "grace" and drawn["age"] <= 14
    rows: list[tuple[bool, str]] = [
        (drawn["unit"] != "kda", "wrong-unit"),
        (drawn["files"] + drawn["tests"] != "ab", "stale"),
        (drawn["key"] != "good", "untrusted"),
        (drawn["age"] < 0, "untrusted"),
        (drawn["outcome"] != "passed", drawn["outcome"]),
        (drawn["device"] != "NVIDIA H200", "wrong-device"),
        (drawn["torch"] != "2.11.0", "wrong-toolchain"),
        (drawn["seeds"] < 3, "below-floor"),
        (drawn["age"] > 90, "too-old"),
        (drawn["boundary"] == "7" and grace, "stale"),
        (drawn["boundary"] != "9", "boundary-changed"),
    ]
    status = next((word for applies, word in rows if applies), "covered")
    return status == "covered" or (status == "boundary-changed" and grace), status


SOUND = {
    "unit": "kda",
    "files": "a",
    "tests": "b",
    "boundary": "9",
    "key": "good",
    "outcome": "passed",
    "device": "NVIDIA H200",
    "torch": "2.11.0",
    "seeds": 3,
    "age": 0,
}


def with_boundaries(test: Callable[..., None]) -> Callable[..., None]:
    """Whatever only the last rows of the table decide, which few draws reach."""
    for boundary, age, rule in product("987", (GRACE_DAYS, GRACE_DAYS + 1), ("grace", "stale")):
        test = example([{**SOUND, "boundary": boundary, "age": age}], rule)(test)
    return test


@settings(max_examples=150, deadline=None)
@given(st.lists(DRAWN, max_size=4), st.sampled_from(["grace", "stale"]))
@with_boundaries
def test_the_answer_is_that_of_a_decision_table(drawn: list[dict[str, Any]], boundary: str) -> None:
    under = policy(
        trust=KEYRING.model_copy(update={"boundary": boundary}),
        toolchain=POLICY_NOW.toolchain.model_validate({"ranges": {"torch": ">=2.11"}}),
    )
    signed = []
    for place, one in enumerate(drawn):
        results = TestResults(**{one["outcome"]: ("t",)})
        made = told(
            unit=one["unit"],
            digest=digest(one["files"]),
            tests=digest(one["tests"]),
            run=f"{place}" * 32,
            finished=datetime(DAY.year, DAY.month, DAY.day, tzinfo=UTC)
            - timedelta(days=one["age"]),
            machine={"device": one["device"]},
            packages={"torch": one["torch"]},
            content={"seeds": tuple(range(one["seeds"])), "results": results},
        )
        facts = made.predicate.inputs
        moved = tuple(f.model_copy(update={"sha256": digest(one["boundary"])}) for f in BOUNDARY)
        predicate = made.predicate.model_copy(
            update={"inputs": facts.model_copy(update={"boundary": moved})}
        )
        who = one["key"]
        valid = frozenset({who} - {"forged", "unknown"})
        signed.append((Statement(made.predicate_type, predicate), Signatures((who,), valid)))
    found = answer(*signed, under=under)

    best = min(
        (expected(one, boundary) for one in drawn),
        key=lambda e: (not e[0], ORDER.index(e[1])),
        default=(False, "missing"),
    )
    assert (found.covers, found.status.value) == best
    assert found.detail
    # What a plan leaves out is what is covered here, and nothing else.
    evidence = Evidence(judge(signed, under.trust, DAY))
    left_out = covered_by(evidence, Terms(under, MANIFEST_NOW, DAY), inputs)(KDA, inputs())
    assert left_out == (best[1] == "covered")

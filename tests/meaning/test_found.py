# SPDX-License-Identifier: Apache-2.0
"""An attack round by fresh eyes: what was tried against the rules, and what came of it.

`tests/cases/meaning/found/` holds the tries, whether they were caught or not, and look-alikes in
which nothing is wrong; `carriers.yaml` says what their fields mean. A try that passes today is kept
as such, so that the day on which a rule learns it, or forgets another, is seen.

    cd tests && python -m meaning.test_found      # stores what is said today; read the difference
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
import yaml

from fasttrack.rules import RULES

from .corpus import FOLDER, KERNELS, Files, Made, project
from .executed import Ask, fails, passes, running, trial
from .judged import alarms, case_of, findings

PASSED = "passed"
Outcome = str | list[str]


@dataclass(frozen=True)
class Head(Made):
    """A change that may also remove files.

    Attributes:
        after: all files as they are then.
    """

    after: Files = ()  # type: ignore[assignment]

    @property
    def head(self) -> Files:
        return self.after


@dataclass(frozen=True)
class Try:
    """One try, or one look-alike.

    Attributes:
        name: what it does, in words.
        data: its fields.
    """

    name: str
    data: Mapping[str, Any]

    @property
    def honest(self) -> bool:
        """Whether nothing is wrong with it."""
        return bool(self.data.get("honest"))

    @property
    def now(self) -> Outcome:
        """What is said about it today."""
        found: Outcome = self.data.get("now", self.data["first"])
        return found

    @property
    def change(self) -> Head:
        """It as a change of the host project."""
        base = {**project(), **self.data.get("base", {})}
        files = {**base, **self.data.get("files", {})}
        if "code" in self.data:
            files[KERNELS] = f"{files[KERNELS]}\n\n{self.data['code']}"
        after = {path: text for path, text in files.items() if text is not None}
        return Head(base, files, self.data.get("module", "host.fast.kernels"), after=after)


@cache
def tries() -> tuple[Try, ...]:
    """All of them, in the order of their files."""
    return tuple(
        Try(name, data)
        for file in sorted((FOLDER / "found").glob("*.yaml"))
        for name, data in yaml.load(file.read_text("utf-8"), Loader=yaml.CSafeLoader).items()
    )


def outcome(one: Try) -> Outcome:
    """What the rules of the two families say."""
    return sorted({f.rule for f in alarms(findings(case_of(one.change)))}) or PASSED


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    with running() as ask:
        yield ask


def test_the_round_is_of_many_ideas_and_look_alikes() -> None:
    names = [one.name for one in tries()]
    honest = sum(one.honest for one in tries())

    assert len(names) == len(set(names))
    assert len(names) - honest >= 30
    assert honest >= 10


def test_every_try_names_rules_that_there_are_and_every_look_alike_none() -> None:
    known = {rule.id for rule in RULES}

    for one in tries():
        should = one.data.get("should", [])
        assert bool(should) != one.honest, one.name
        assert set(should) <= known, one.name
        assert "why" not in one.data or one.now == PASSED, one.name


def test_no_try_that_was_caught_passes_today_and_no_look_alike_is_blamed() -> None:
    wrong = [one.name for one in tries() if one.honest and one.now != PASSED]
    wrong += [
        one.name
        for one in tries()
        if not one.honest and one.now == PASSED and one.data["first"] != PASSED
    ]
    assert wrong == []


@pytest.mark.parametrize("one", tries(), ids=lambda one: one.name)
def test_what_is_said_about_a_try_is_what_is_kept(one: Try) -> None:
    assert outcome(one) == one.now


@pytest.mark.parametrize("proof", ["state", "shows", "mutant", "head_passes"])
def test_every_try_has_its_effect_and_no_look_alike_has_one(proof: str, ask: Ask) -> None:
    proved = [one for one in tries() if proof in one.data]
    wrong = [one.name for one in proved if _PROOFS[proof](one, ask) == one.honest]

    assert len(proved) >= 5
    assert wrong == []


def _state(one: Try, ask: Ask) -> bool:
    """Whether importing the module changes the value of an expression."""
    change, state = one.change, one.data["state"]
    shared = [path for path in change.base if path.startswith("host/shared/")]
    modules = {path.removesuffix(".py").replace("/", ".") for path in shared}
    others = {m.removesuffix(".__init__") for m in modules} - {"host.shared.late"}
    answer = ask({
        "files": change.head, "module": change.module, "call": "", "events": [],
        "modules": sorted({"torch.fx", "torch._dynamo", *others}), "states": [state],
    })  # fmt: skip
    return state in answer.get("states", ())


def _shows(one: Try, ask: Ask) -> bool:
    """Whether an expression has another value than before."""
    job = {"module": one.change.module, "shows": one.data["shows"]}
    before, after = (ask({"files": f, **job}) for f in (one.change.base, one.change.head))
    assert "shown" in before, (one.name, before)
    assert "shown" in after, (one.name, after)
    return before != after


def _mutant(one: Try, ask: Ask) -> bool:
    """Whether a wrong kernel that the old tests notice is noticed no more."""
    change, mutant = one.change, one.data["mutant"]
    noticed = trial(change.base, mutant)
    if noticed not in _NOTICED:
        assert fails(ask(noticed)), one.name
        _NOTICED.append(noticed)
    return passes(ask(trial(change.head, mutant)))


def _head_passes(one: Try, ask: Ask) -> bool:
    """Whether the tests pass over the change's own kernel, which is wrong."""
    return passes(ask(trial(one.change.head, "")))


_NOTICED: list[Mapping[str, Any]] = []
"""Trials that are known to fail: many tries weaken the same test."""
_PROOFS = {"state": _state, "shows": _shows, "mutant": _mutant, "head_passes": _head_passes}


def _stored(text: str, said: Sequence[Outcome]) -> str:
    """The text of a file of tries with what is said about each of them."""
    rows: list[str | None] = list(text.split("\n"))
    root = yaml.compose(text, Loader=yaml.CSafeLoader)
    assert isinstance(root, yaml.MappingNode)
    for (_, fields), now in zip(root.value, said, strict=True):
        lines = {key.value: key.start_mark.line for key, _ in fields.value}
        if "now" in lines:
            rows[lines["now"]] = None
        words = now if isinstance(now, str) else f"[{', '.join(now)}]"
        first = rows[lines["first"]]
        if first != f"  first: {words}":
            rows[lines["first"]] = f"{first}\n  now: {words}"
    return "\n".join(row for row in rows if row is not None)


def main() -> None:
    """Stores what is said about every try and look-alike today."""
    for file in sorted((FOLDER / "found").glob("*.yaml")):
        text = file.read_text("utf-8")
        found = yaml.load(text, Loader=yaml.CSafeLoader)
        said = [outcome(Try(name, data)) for name, data in found.items()]
        file.write_text(_stored(text, said), encoding="utf-8")


if __name__ == "__main__":
    main()

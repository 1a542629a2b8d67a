# SPDX-License-Identifier: Apache-2.0
"""The way in: runs the parts that were asked for, and returns what they have shown."""

from collections.abc import Callable
from dataclasses import dataclass

from fasttrack.case import Case
from fasttrack.errors import FactUnavailable
from fasttrack.executed.base_tests import run_base_tests
from fasttrack.executed.collection import collect_tests
from fasttrack.executed.probe import import_probe
from fasttrack.executed.sandbox import require_sandbox
from fasttrack.ran import RUN_TIMEOUT_S, BaseTests, Collection, Executed, Probe, Unknown

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Asked:
    """What to run; every field is an option of `fasttrack check`.

    Attributes:
        probe: import the governed code, and collect the named tests.
        base_tests: run the target branch's tests over the change's code.
        timeout_s: seconds that one run may take.
    """

    probe: bool = False
    base_tests: bool = False
    timeout_s: float = RUN_TIMEOUT_S


def execute(case: Case, asked: Asked, tell: Tell = lambda _: None) -> Executed:
    """Runs code of the change, as far as it was asked for.

    Args:
        case: the change; nothing is executed when it is out of the lane.
        asked: what to run.
        tell: is told what begins.

    Raises:
        InputError: this system has no sandbox, or something can not be killed.
    """
    if not (asked.probe or asked.base_tests) or not case.in_lane:
        return Executed()
    require_sandbox()
    return Executed(
        _probe(case, asked, tell) if asked.probe else None,
        _collection(case, asked, tell) if asked.probe else None,
        _base_tests(case, asked, tell) if asked.base_tests else None,
    )


def _probe(case: Case, asked: Asked, tell: Tell) -> Probe:
    try:
        return import_probe(case, asked.timeout_s, tell)
    except FactUnavailable as reason:
        return Probe(unknown=(Unknown("", str(reason)),))


def _collection(case: Case, asked: Asked, tell: Tell) -> Collection:
    try:
        return collect_tests(case, asked.timeout_s, tell)
    except FactUnavailable as reason:
        return Collection(unknown=(Unknown("", str(reason)),))


def _base_tests(case: Case, asked: Asked, tell: Tell) -> BaseTests:
    try:
        return run_base_tests(case, asked.timeout_s, tell)
    except FactUnavailable as reason:
        return BaseTests(unknown=(Unknown("", str(reason)),))

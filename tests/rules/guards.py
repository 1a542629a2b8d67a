# SPDX-License-Identifier: Apache-2.0
"""The guard matrix: every rule and every limit has a case that turns red without it.

Each rule's cases run again with the rule switched off by policy, and with each of its limits one
higher and one lower. `limits.yaml` beside a rule's cases lists its limits: fields of the policy
(`budgets.files`; `wiring.*.max_lines` for all entries) and constants of the rule's module.

    cd tests && python -m rules.guards      # prints the matrix and stores it
"""

import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from fasttrack.case import Case
from fasttrack.policy.model import Policy
from fasttrack.rules import RULES
from fasttrack.rules.base import Rule
from fasttrack.verdict import judge

from .cases import RuleCase, build, case_files, differences, folder_of, load, opened, under

STORED = Path(__file__).parent.parent / "cases" / "guard_matrix.json"


def limits_of(rule: Rule) -> tuple[str, ...]:
    """The limits that a rule names in its `limits.yaml`."""
    file = folder_of(rule) / "limits.yaml"
    return tuple(yaml.safe_load(file.read_text(encoding="utf-8"))) if file.exists() else ()


def matrix() -> dict[str, Any]:
    """Rule id to what turns red: how many of its cases without it, which ones off by one."""
    return {rule.id: _row(rule) for rule in RULES}


def shown(found: dict[str, Any]) -> str:
    """The matrix as a table for people."""
    lines = [f"{'rule':6} {'cases':>5} {'red without it':>14}  limits: red one higher / one lower"]
    for rule, row in found.items():
        limits = "; ".join(
            f"{name}: {len(red['higher'])} / {len(red['lower'])}"
            for name, red in row["limits"].items()
        )
        lines.append(f"{rule:6} {row['cases']:5} {row['red_without_it']:14}  {limits}".rstrip())
    return "\n".join(lines)


def _row(rule: Rule) -> dict[str, Any]:
    limits: dict[str, Any] = {name: {"higher": [], "lower": []} for name in limits_of(rule)}
    without = 0
    for file in case_files(rule):
        case = load(file)
        with (
            tempfile.TemporaryDirectory() as temporary,
            opened(case, build(case, Path(temporary))) as facts,
        ):
            without += _is_red(case, under(facts, _switched_off(rule)))
            for name, red in limits.items():
                for side, step in (("higher", 1), ("lower", -1)):
                    with _moved(rule, facts, name, step) as moved:
                        if _is_red(case, moved):
                            red[side].append(case.name)
    return {"cases": len(case_files(rule)), "red_without_it": without, "limits": limits}


def _is_red(case: RuleCase, facts: Case) -> bool:
    return bool(differences(case, judge(facts).findings))


def _switched_off(rule: Rule) -> Callable[[Policy], Policy]:
    return lambda p: p.model_copy(update={"rules": {**p.rules, rule.id: "off"}})


@contextmanager
def _moved(rule: Rule, facts: Case, name: str, step: int) -> Iterator[Case]:
    """The facts with one limit moved: in the policy, or in the rule's module."""
    if not name.isupper():
        yield under(facts, lambda policy: _stepped(policy, name.split("."), step))
        return
    module = sys.modules[type(rule).__module__]
    before = getattr(module, name)
    setattr(module, name, before + step)
    try:
        yield facts
    finally:
        setattr(module, name, before)


def _stepped(value: Any, path: list[str], step: int) -> Any:
    """A copy of a policy in which the number at `path` is moved."""
    if not path:
        return value + step
    first, *rest = path
    if first == "*":
        return tuple(_stepped(item, rest, step) for item in value)
    return value.model_copy(update={first: _stepped(getattr(value, first), rest, step)})


if __name__ == "__main__":
    computed = matrix()
    STORED.write_text(json.dumps(computed, indent=1) + "\n", encoding="utf-8")
    print(shown(computed))

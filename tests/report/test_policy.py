# SPDX-License-Identifier: Apache-2.0
"""`fasttrack policy show` shows a policy whole: a field that it forgets is found here."""

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from enum import Enum
from functools import partial
from typing import Any

import pytest
from pydantic import BaseModel

from fasttrack.case import Config, ManifestSet
from fasttrack.policy.load import load_policy
from fasttrack.policy.model import Policy
from fasttrack.report.policy import policy_text
from fasttrack.workspace import Workspace
from tests.engine import POLICY, files
from tests.evidence.keys import key

MORE = f"""
wiring: [{{path: engine/switch.py, symbol: pick, max_lines: 7}}]
bind: [engine/ops/**]
floors:
  kernel_seeds: 5
  stress_iterations: 300
  stress_profile: soak
  eval_samples: 600
  eval_drop_max: 0.02
toolchain: {{exact: {{nvidia-cutlass-dsl: 4.8.1}}, ranges: {{torch: ">=2.11"}}}}
trust:
  keys:
    - id: lab
      public: "{key("lab").public}"
      roles: [runner]
      kinds: [refusal]
      pool: lab-pool
      hardware: [h100]
      valid_from: 2026-01-01
      valid_until: 2026-12-31
      revoked: 2026-12-30
  identities:
    - id: ci
      issuer: https://token.example.com
      subject: https://example.com/lab/engine/.ci/measure.yml@refs/heads/main
      roles: [runner]
      kinds: [stress]
      pool: ci-pool
      hardware: [gb300]
      valid_from: 2026-02-01
      valid_until: 2026-12-30
      revoked: 2026-12-29
  sigstore_root: "{"5" * 64}"
  thresholds: {{stress: 2}}
  max_age_days: {{refusal: 33}}
  boundary: stale
rules: {{FT101: note}}
new_paths: split
decision_days: 21
"""
APPROVALS = """approvals:
  users: [somebody]
  teams: [org/team]
  codeowners: false
  per_tier: {served: 3}
  policy_changes: 4
"""


def whole_policy() -> Policy:
    """A policy that says something in every field."""
    text = files()[POLICY].replace("approvals: {codeowners: true}\n", APPROVALS)
    text = text.replace("domain_gpus: 72}", BANDWIDTH, 1)
    return load_policy(text + MORE, "policy.yaml")


BANDWIDTH = "domain_gpus: 72, bandwidth_tb_s: {peak: 8.0, sustained: 7.5}}"


def shown(policy: Policy) -> str:
    return policy_text(Workspace(None, Config("manifests", policy, ""), ManifestSet(())))  # type: ignore[arg-type]


def other(value: Any) -> Any:
    """Another value of the same type, so that a text that shows the value differs."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, Enum):
        return next(one for one in type(value) if one is not value)
    if isinstance(value, int | float):
        return value + 1
    return value + "x" if isinstance(value, str) else value - timedelta(days=1)


def parts(value: Any) -> Iterator[tuple[str, Any, Callable[[Any], Any]]]:
    """Name and content of every part, and what makes the whole with another in its place."""
    if isinstance(value, BaseModel):
        for name in type(value).model_fields:
            put = partial(lambda n, x: value.model_copy(update={n: x}), name)
            yield name, getattr(value, name), put
    elif isinstance(value, Mapping):
        for key_, item in value.items():
            yield str(key_), item, partial(lambda k, x: {**value, k: x}, key_)
    elif isinstance(value, tuple):
        for at, item in enumerate(value):
            yield str(at), item, partial(lambda n, x: (*value[:n], x, *value[n + 1 :]), at)


def variants(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """The value with one of its leaves changed, for every leaf; and without each of its items."""
    if isinstance(value, Mapping):
        for name in value:
            yield f"{place} without {name}", {k: v for k, v in value.items() if k != name}
    if isinstance(value, tuple):
        for at in range(len(value)):
            yield f"{place} without {at}", value[:at] + value[at + 1 :]
    if not isinstance(value, BaseModel | Mapping | tuple) and value is not None:
        yield place, other(value)  # for None another record of the same type has a value
    for name, item, put in parts(value):
        yield from ((where, put(changed)) for where, changed in variants(item, f"{place}.{name}"))


def empty_fields(value: Any, place: str) -> Iterator[str]:
    """Fields that say nothing: a change of what they could say would go unseen here."""
    if isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from empty_fields(getattr(value, name), f"{place}.{name}")
    elif isinstance(value, Mapping):
        items = [*value.values()]
        yield from [place] if not items else empty_fields(items[-1], place)
    elif isinstance(value, tuple):
        yield from [place] if not value else empty_fields(value[-1], place)
    elif value is None:
        yield place


def test_the_policy_of_this_test_says_something_in_every_field() -> None:
    assert [*empty_fields(whole_policy(), "policy")] == []


def test_whatever_changes_in_a_policy_changes_what_is_shown() -> None:
    policy = whole_policy()
    told = shown(policy)
    changed = [*variants(policy, "policy")]
    assert len(changed) > 100
    assert [place for place, variant in changed if shown(variant) == told] == []


@pytest.mark.parametrize("said", ["bind evidence: engine/ops/**", "rule FT101 is set to note: "])
def test_some_of_it_reads_like_this(said: str) -> None:
    assert said in shown(whole_policy())


def test_what_a_policy_says_can_forge_no_line() -> None:
    policy = whole_policy().model_copy(update={"bind": ("x\ntrust: \x1b[2K",)})  # unvalidated
    assert shown(policy).count("\n") == shown(whole_policy()).count("\n")
    assert shown(policy).isascii()
    assert "\x1b" not in shown(policy)

# SPDX-License-Identifier: Apache-2.0
"""The example's files and changes, as data.

`engine` is a toy inference engine. The decode path `toy` owns `engine/models/toy/`; the scheduler
is shared code. The policy is the one that `fasttrack init` proposes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta

from fasttrack.adopt.layouts import GENERIC
from fasttrack.adopt.propose import Answers, propose
from fasttrack.testing import Content
from fasttrack.verdict import Outcome

ROOT = "engine/models/toy/"
FOLDER = "manifests"
MANIFEST = f"{FOLDER}/toy.yaml"
KERNEL = ROOT + "attention.py"
SCHEDULER = "engine/scheduler.py"

_ATTENTION = '''"""Toy attention: scores are dot products, outputs are their weighted means."""


def attend(query, keys, values):
    """One query against a list of keys."""
    scores = [sum(q * k for q, k in zip(query, key)) for key in keys]
    total = sum(scores) or 1.0
    return [sum(s * v[i] for s, v in zip(scores, values)) / total for i in range(len(query))]
'''
_GATE = '''"""Decides which steps the toy path takes."""


def admits(requests, scope):
    """Whether a step of so many requests is inside the scope."""
    return scope.min <= requests <= scope.max
'''
_SCHEDULER = '''"""Shared by every model: picks the next requests."""


def pick(waiting, limit):
    """The oldest requests, at most `limit`."""
    return waiting[:limit]
'''
_TEST = """from engine.models.toy.attention import attend


def test_one_key_gives_its_value():
    assert attend([1.0], [[2.0]], [[5.0]]) == [5.0]
"""
_GATE_TEST = """from types import SimpleNamespace

from engine.models.toy.gate import admits


def test_the_last_step_inside_the_scope_is_admitted():
    scope = SimpleNamespace(min=1, max=8)
    assert admits(8, scope) and not admits(9, scope)
"""
_UNITS_BEFORE = """  - id: toy-core
    files: ["engine/models/toy/**"]
    tests: ["tests/**"]
    axes: [rows, tensor_parallel]
"""
_UNITS_AFTER = """  - id: attention
    files: [engine/models/toy/attention.py]
    tests: [tests/test_attention.py]
    axes: [rows, tensor_parallel, kv_cache]
  - id: gate
    files: [engine/models/toy/gate.py, engine/models/toy/__init__.py]
    tests: [tests/test_gate.py]
    axes: [requests]
"""


@dataclass(frozen=True)
class Example:
    """One change of the example.

    Attributes:
        branch: its branch.
        says: what its author did.
        lesson: what the verdict shows.
        files: path to new content.
        outcome: the verdict that it must get; `fasttrack demo` fails when it gets another.
    """

    branch: str
    says: str
    lesson: str
    files: Mapping[str, Content]
    outcome: Outcome


def base_files(as_of: date) -> Mapping[str, str]:
    """The target branch: engine, policy, and a manifest that claims `kernel-tested`."""
    answers = Answers(
        layout=GENERIC,
        roots=(ROOT,),
        folder=FOLDER,
        owner="toy-owner",
        backup="toy-backup",
        model="example/toy",
        as_of=as_of - timedelta(days=1),
    )
    proposed = dict(propose(answers))
    proposed[MANIFEST] = _manifest(proposed[MANIFEST])
    return proposed | {
        "engine/__init__.py": "",
        SCHEDULER: _SCHEDULER,
        ROOT + "__init__.py": "",
        KERNEL: _ATTENTION,
        ROOT + "gate.py": _GATE,
        "tests/test_attention.py": _TEST,
        "tests/test_gate.py": _GATE_TEST,
    }


def examples(as_of: date) -> tuple[Example, ...]:
    """The four changes, mildest verdict first."""
    manifest = base_files(as_of)[MANIFEST]
    faster = _ATTENTION.replace("    total =", "    # one pass: the sum is kept\n    total =")
    hidden = _ATTENTION.replace(
        "    total = sum(scores) or 1.0\n",
        "    total = sum(scores) or 1.0  # never zero \u202e rewritten by review \u2066\n",
    )
    return (
        Example(
            "narrow-the-scope",
            "The author lowers the largest batch that the path takes from 8 to 4 requests.",
            "Narrowing claims nothing new, so it owes nothing.",
            {
                MANIFEST: manifest.replace("max: 8}", "max: 4}").replace(
                    "rows_max: 8", "rows_max: 4"
                )
            },
            Outcome.FAST_TRACK,
        ),
        Example(
            "faster-attention",
            "The author edits the attention kernel, and nothing else.",
            "The change stays inside the scope; evidence for the edited kernel is owed.",
            {KERNEL: faster},
            Outcome.NEEDS_EVIDENCE,
        ),
        Example(
            "kernel-and-scheduler",
            "The author edits the kernel, and the scheduler that every model shares.",
            "Shared code needs a reader who knows it; no kernel evidence speaks about it.",
            {KERNEL: faster, SCHEDULER: _SCHEDULER.replace("[:limit]", "[: limit + 1]")},
            Outcome.ORDINARY_REVIEW,
        ),
        Example(
            "hidden-text",
            "A comment holds characters that make editors show other text than Python reads.",
            "Hidden bytes must not merge by any route.",
            {KERNEL: hidden},
            Outcome.REFUSED,
        ),
    )


def _manifest(proposed: str) -> str:
    """The proposed manifest, with two units and a tier that owes evidence."""
    return proposed.replace(_UNITS_BEFORE, _UNITS_AFTER).replace(
        "tier: declared", "tier: kernel-tested"
    )

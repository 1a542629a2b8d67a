# SPDX-License-Identifier: Apache-2.0
"""What an import may do to PyTorch, and that the probe sees it and no operator of one's own."""

from pathlib import Path

from fasttrack.executed.probe import import_probe
from fasttrack.testing import Content
from tests.executed.scratch import TIMEOUT_S, cases, facts, sandboxed, silent

CASES = cases("probe_torch")
EFFECTS, HONEST = CASES["effects"], CASES["honest"]


@sandboxed
def test_effects_on_torch_are_seen_and_own_operators_are_not(tmp_path: Path) -> None:
    names = {f"engine/foo/e{n:02}.py": name for n, name in enumerate(EFFECTS)}
    change: dict[str, Content] = {path: EFFECTS[name] for path, name in names.items()}
    change |= {f"engine/foo/{name}.py": source for name, source in HONEST.items()}
    with facts(tmp_path, {}, change) as case:
        probe = import_probe(case, TIMEOUT_S, silent)
    seen = {names.get(d.path, d.path): (d.what, d.how) for d in probe.differences}
    assert probe.unknown == ()
    assert set(seen) == set(EFFECTS), (set(EFFECTS) ^ set(seen), seen)

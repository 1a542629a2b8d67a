# SPDX-License-Identifier: Apache-2.0
"""Widenings of what a path owns and touches."""

from collections.abc import Iterator

from fasttrack.manifest.consistency import holds_path
from fasttrack.manifest.model import Code, Switch
from fasttrack.manifest.widened import Widening, WideningKind


def code_widenings(base: Code | None, head: Code) -> Iterator[Widening]:
    """New roots and wiring, larger budgets, gate files less, another switch."""
    old_roots = base.roots if base else ()
    for root in head.roots:
        if not any(holds_path(old, root) for old in old_roots):
            yield Widening(WideningKind.ROOT, f"the root '{root}'", "a root inside the old roots")
    for path in base.gate if base else ():
        if path not in head.gate:
            yield Widening(WideningKind.GATE, f"no gate file '{path}'", "all old gate files")
    yield from _wiring(base, head)
    if base is None or base.switch != head.switch:
        want = f"'{_shown(base.switch)}'" if base else "no new option"
        yield Widening(WideningKind.SWITCH, f"the switch '{_shown(head.switch)}'", want)


def _wiring(base: Code | None, head: Code) -> Iterator[Widening]:
    budgets = {(w.path, w.symbol): w.max_lines for w in (base.wiring if base else ())}
    for wiring in head.wiring:
        old = budgets.get((wiring.path, wiring.symbol))
        place = f"'{wiring.symbol}' of '{wiring.path}'"
        if old is None:
            yield Widening(WideningKind.WIRING, f"wiring at {place}", "only old wiring")
        elif wiring.max_lines > old:
            saw = f"{wiring.max_lines} lines for {place}"
            yield Widening(WideningKind.BUDGET, saw, f"at most {old}")


def _shown(switch: Switch) -> str:
    return f"{switch.option}: {switch.value} (default {switch.default}, fallback {switch.fallback})"

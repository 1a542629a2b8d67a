# SPDX-License-Identifier: Apache-2.0
"""Widenings of the terms: refusals, evidence, toolchain, claims, lease and waivers."""

from collections.abc import Iterator, Mapping, Sequence

from fasttrack.manifest.consistency import holds_path
from fasttrack.manifest.model import Claim, Eval, Evidence, Lease, Refusal, Waiver
from fasttrack.manifest.widened import Widening, WideningKind
from fasttrack.manifest.words import ClaimStatus


def refusal_widenings(base: Sequence[Refusal], head: Sequence[Refusal]) -> Iterator[Widening]:
    """Refusals that are gone or asked by another probe."""
    probes = {r.feature: r.probe for r in head}
    for old in base:
        probe = probes.get(old.feature)
        if probe != old.probe:
            saw = f"no refusal of '{old.feature}'"
            if probe is not None:
                saw = f"the probe '{probe}' for '{old.feature}'"
            yield Widening(WideningKind.REFUSAL, saw, f"the probe '{old.probe}'")


def evidence_widenings(base: Evidence, head: Evidence) -> Iterator[Widening]:
    """Tests, tasks and bars that are gone or lower."""
    for test in base.tests:
        if test not in head.tests:
            yield Widening(WideningKind.TESTS, f"no test '{test}'", "all old tests")
    tasks = {e.task: e for e in head.evals}
    for old in base.evals:
        yield from _eval(old, tasks.get(old.task))
    for name, bar in base.bars.items():
        new = head.bars.get(name)
        if new is None or new < bar:
            saw = f"no bar '{name}'" if new is None else f"the bar '{name}' at {new:g}"
            yield Widening(WideningKind.THRESHOLD, saw, f"at least {bar:g}")


def toolchain_widenings(base: Mapping[str, str], head: Mapping[str, str]) -> Iterator[Widening]:
    """Packages that are gone or have another version."""
    for package, version in base.items():
        new = head.get(package)
        if new != version:
            saw = f"{package} {new}" if new else f"no version of {package}"
            yield Widening(WideningKind.TOOLCHAIN, saw, version)


def claim_widenings(base: Sequence[Claim], head: Sequence[Claim]) -> Iterator[Widening]:
    """Claims that are new or say more than before."""
    before = {claim.id: claim for claim in base}
    for claim in head:
        old = before.get(claim.id)
        if old is None:
            yield Widening(WideningKind.CLAIM, f"the claim '{claim.id}'", "only old claims")
        elif more := _says_more(old, claim):
            yield Widening(WideningKind.CLAIM, f"the claim '{claim.id}' with {more}", "as before")


def lease_widenings(base: Lease | None, head: Lease) -> Iterator[Widening]:
    """A lease that is new or ends later, other owners, removal steps that are gone."""
    if base is None:
        yield Widening(WideningKind.LEASE, f"a lease until {head.expires}", "no new lease")
        return
    if head.expires > base.expires:
        yield Widening(WideningKind.LEASE, f"a lease until {head.expires}", f"{base.expires}")
    for role in ("owner", "backup"):
        old, new = getattr(base, role), getattr(head, role)
        if old != new:
            yield Widening(WideningKind.OWNER, f"the {role} '{new}'", f"'{old}'")
    for path in base.removal.paths:
        if not any(holds_path(kept, path) for kept in head.removal.paths):
            yield Widening(WideningKind.REMOVAL, f"no removal of '{path}'", "all old steps")
    for edit in base.removal.wiring:
        if edit not in head.removal.wiring:
            saw = f"no removal of the same lines of '{edit.path}'"
            yield Widening(WideningKind.REMOVAL, saw, "all old steps")


def waiver_widenings(base: Sequence[Waiver], head: Sequence[Waiver]) -> Iterator[Widening]:
    """Waivers that are new or end later."""
    ends = {(w.rule, w.path, w.fingerprint): w.expires for w in base}
    for waiver in head:
        old = ends.get((waiver.rule, waiver.path, waiver.fingerprint))
        if old is None or waiver.expires > old:
            saw = f"a waiver of {waiver.rule} for '{waiver.path}' until {waiver.expires}"
            yield Widening(WideningKind.WAIVER, saw, f"until {old}" if old else "only old waivers")


def _eval(old: Eval, new: Eval | None) -> Iterator[Widening]:
    kind, task = WideningKind.THRESHOLD, old.task
    if new is None:
        yield Widening(kind, f"no eval task '{task}'", "all old tasks")
        return
    if new.samples_min < old.samples_min:
        saw = f"{new.samples_min} samples of '{task}'"
        yield Widening(kind, saw, f"at least {old.samples_min}")
    if new.drop_max > old.drop_max:
        saw = f"a drop of {new.drop_max:g} in '{task}'"
        yield Widening(kind, saw, f"at most {old.drop_max:g}")


def _says_more(old: Claim, new: Claim) -> str:
    if any(getattr(old, f) != getattr(new, f) for f in ("metric", "of", "workload", "ours")):
        return "other conditions"
    if old.baseline != new.baseline:
        return "another baseline"
    if new.ratio > old.ratio:
        return f"the ratio {new.ratio:g} instead of {old.ratio:g}"
    if (old.status, new.status) == (ClaimStatus.REPORTED, ClaimStatus.MEASURED):
        return f"the status '{new.status}'"
    return "no 'uncontrolled'" if old.uncontrolled and not new.uncontrolled else ""

# SPDX-License-Identifier: Apache-2.0
"""FT303: what a manifest newly lets through is what evidence can answer."""

from collections.abc import Iterator

from fasttrack.case import Case
from fasttrack.errors import FactUnavailable
from fasttrack.finding import Finding, Level
from fasttrack.manifest.consistency import Loc
from fasttrack.manifest.model import Manifest
from fasttrack.manifest.widening import WideningKind, widenings
from fasttrack.rules.base import Rule
from fasttrack.rules.manifest.edited import MAX_FINDINGS, Subject, edited, line_of

PLACES: dict[WideningKind, Loc] = {
    WideningKind.MODEL: ("model",),
    WideningKind.STATE: ("state",),
    WideningKind.ROOT: ("code", "roots"),
    WideningKind.GATE: ("code", "gate"),
    WideningKind.WIRING: ("code", "wiring"),
    WideningKind.BUDGET: ("code", "wiring"),
    WideningKind.SWITCH: ("code", "switch"),
    WideningKind.UNIT: ("units",),
    WideningKind.UNIT_INPUTS: ("units",),
    WideningKind.UNIT_AXIS: ("units",),
    WideningKind.SWITCH_POINT: ("units",),
    WideningKind.ARCH: ("units",),
    WideningKind.TESTS: ("units",),
    WideningKind.POINT: ("scope",),
    WideningKind.TIER: ("scope",),
    WideningKind.REFUSAL: ("refuses",),
    WideningKind.THRESHOLD: ("evidence",),
    WideningKind.TOOLCHAIN: ("toolchain",),
    WideningKind.CLAIM: ("claims",),
    WideningKind.LEASE: ("lease",),
    WideningKind.OWNER: ("lease",),
    WideningKind.REMOVAL: ("lease", "removal"),
    WideningKind.SPONSOR: ("sponsor",),
    WideningKind.WAIVER: ("waivers",),
}
"""The section of a manifest that each kind of widening is in."""


class Widening(Rule):
    """Manifests that let more through than the target branch's, in ways only people can judge."""

    id = "FT303"
    slug = "widening"
    title = "no manifest lets more through than evidence can answer"
    level = Level.ROUTE
    refuses = (
        "A new manifest. In an edited one: another model or weights, a state that lets it run "
        "again, a new root, wiring, waiver or claim, a raised line budget, another switch, a gate "
        "file, unit, unit input, test, axis, architecture, refusal or removal step less, another "
        "variant table, a lower bar, in a path above `declared` a new unit without an axis or "
        "architecture of the others, another toolchain, owner or sponsor, a longer lease."
    )
    why = "No measurement can tell whether the path should own, touch or promise more."
    blind = "New points and higher tiers: they owe evidence, and FT304 notes them."
    fix = "leave the widening out, or let a maintainer read it"
    waivable = False

    def check(self, case: Case) -> Iterator[Finding]:
        """One finding per widening, one for a whole new manifest."""
        for subject in edited(case):
            if subject.base is None:
                yield self._new(subject.path, subject.head)
                continue
            try:
                yield from self._wider(case, subject)
            except FactUnavailable as reason:
                yield self.could_not_tell(reason, subject.path)

    def _wider(self, case: Case, subject: Subject) -> Iterator[Finding]:
        found = [w for w in widenings(subject.base, subject.head) if w.needs_human]
        for widening in found[:MAX_FINDINGS]:
            yield self.finding(
                path=subject.path,
                line=line_of(case, subject.path, PLACES[widening.kind]),
                saw=widening.saw,
                want=widening.want,
            )
        if len(found) > MAX_FINDINGS:
            saw = f"{len(found) - MAX_FINDINGS} more widenings"
            yield self.finding(path=subject.path, saw=saw, want="no widening")

    def _new(self, path: str, manifest: Manifest) -> Finding:
        code = manifest.code
        top = max((region.tier for region in manifest.scope), key=lambda tier: tier.rank)
        wired = ", ".join(f"`{w.symbol}` of `{w.path}`" for w in code.wiring) or "none"
        return self.finding(
            path=path,
            saw=(
                f"the new manifest '{manifest.name}' of {manifest.model}: "
                f"roots {', '.join(f'`{root}`' for root in code.roots)}; wiring {wired}; "
                f"switch {code.switch.option}: {code.switch.value}; "
                f"units: {len(manifest.units)}; regions: {len(manifest.scope)}, up to {top.value}; "
                f"claims: {len(manifest.claims)}; waivers: {len(manifest.waivers)}"
            ),
            want="a maintainer who reads the manifest, its wiring, switch, tests and tolerances",
            content=manifest.model_dump_json(),
        )

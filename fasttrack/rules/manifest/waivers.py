# SPDX-License-Identifier: Apache-2.0
"""FT314: waivers name a finding that they can lift, for a bounded time."""

from collections.abc import Iterator
from datetime import timedelta

from fasttrack.case import Case, in_roots
from fasttrack.change.tree import Tree
from fasttrack.finding import Level
from fasttrack.manifest.consistency import Fault, Loc
from fasttrack.manifest.model import AUDIT_WAIVER, Manifest, Waiver
from fasttrack.rules.base import Rule
from fasttrack.rules.manifest.edited import ManifestRule

SKELETON = 64
"""Hexadecimal digits of a kernel's skeleton."""


class Waivers(ManifestRule):
    """Waivers without effect, without end, or beyond the path."""

    id = "FT314"
    slug = "waivers"
    title = "waivers are bounded and within the path"
    level = Level.ROUTE
    refuses = (
        "In an added or edited manifest, a waiver that has expired, that ends more than "
        "`lease.max_days` after the day of the judgement, of a rule that does not exist or can "
        "not be waived, of machine code by anything but its whole skeleton, or for a file that is "
        "neither in the roots, nor wired, nor the manifest."
    )
    why = (
        "A waiver lets one finding through, and people read it once. What it names wrongly stays "
        "in the file and looks like a permission."
    )
    blind = (
        "Whether a finding has the fingerprint: a waiver works from the target branch, so it is "
        "merged before the change that needs it."
    )
    fix = "copy rule, path and fingerprint from the finding's JSON"
    waivable = False

    def faults(self, case: Case, manifest: Manifest, tree: Tree) -> Iterator[Fault]:
        """Looks at every waiver."""
        own = {path for path, m in case.head.valid.items() if m.name == manifest.name}
        rules = _rules()
        for i, waiver in enumerate(manifest.waivers):
            loc: Loc = ("waivers", i)
            yield from _times(case, waiver, loc)
            yield from _rule(rules.get(waiver.rule), waiver, loc)
            wired = {w.path for w in manifest.code.wiring}
            if not in_roots(manifest, waiver.path) and waiver.path not in wired | own:
                saw = f"a waiver of {waiver.rule} for `{waiver.path}`"
                want = "a file in the roots, a wired file, or this manifest"
                yield Fault((*loc, "path"), saw, want)


def _times(case: Case, waiver: Waiver, loc: Loc) -> Iterator[Fault]:
    what = f"a waiver of {waiver.rule} for `{waiver.path}`"
    last = case.as_of + timedelta(days=case.policy.lease.max_days)
    if waiver.expires < case.as_of:
        saw = f"{what} that expired on {waiver.expires}"
        yield Fault((*loc, "expires"), saw, f"{case.as_of} or later")
    elif waiver.expires > last:
        yield Fault((*loc, "expires"), f"{what} until {waiver.expires}", f"{last} or earlier")


def _rule(rule: Rule | None, waiver: Waiver, loc: Loc) -> Iterator[Fault]:
    what = f"a waiver of {waiver.rule} for `{waiver.path}`"
    if waiver.rule == AUDIT_WAIVER:
        if len(waiver.fingerprint) != SKELETON:
            saw = f"{what}, with a fingerprint of {len(waiver.fingerprint)} digits"
            yield Fault((*loc, "fingerprint"), saw, f"a skeleton of {SKELETON}, as audits print it")
    elif rule is None:
        yield Fault((*loc, "rule"), f"{what}, which is no rule", "the id of a rule")
    elif not rule.waivable:
        yield Fault((*loc, "rule"), f"{what}, which can not be waived", "a rule that can be")


def _rules() -> dict[str, Rule]:
    # The registry imports this module, so it can be asked only when a rule runs.
    from fasttrack.rules import RULES  # noqa: PLC0415

    return {rule.id: rule for rule in RULES}

# SPDX-License-Identifier: Apache-2.0
"""FT306: every path is governed by at most one manifest."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fasttrack.case import Case
from fasttrack.finding import Finding, Level
from fasttrack.manifest.model import Manifest
from fasttrack.policy.classes import fold
from fasttrack.rules.base import Rule
from fasttrack.rules.manifest.edited import MAX_FINDINGS, edited, line_of


@dataclass(frozen=True)
class _Clash:
    """Two manifests that claim the same; `path` may equal `other`."""

    path: str
    other: str
    saw: str
    want: str
    field: tuple[str, ...]


class RootOverlap(Rule):
    """Roots that two manifests claim, and names that two manifests bear."""

    id = "FT306"
    slug = "root-overlap"
    title = "roots of manifests are disjoint"
    level = Level.BLOCK
    refuses = (
        "A root that equals, holds or lies in a root of another manifest, or in another spelling "
        "of one in the same manifest; letter case and Unicode form make no difference. A name "
        "that another manifest has."
    )
    why = (
        "The weaker of two manifests would decide about the shared files, and a revocation of one "
        "would leave them running under the other."
    )
    blind = "Code that one path imports from another; FT2xx looks at that."
    fix = "give the directory to one of the manifests"
    waivable = False

    def check(self, case: Case) -> Iterator[Finding]:
        """Reports clashes after the merge that involve an edited manifest and are new."""
        mine = {subject.path for subject in edited(case)}
        if not mine:
            return
        before = {clash.saw for clash in _clashes(case.base.valid)}
        found = [
            clash
            for clash in _clashes(case.head.valid)
            if clash.saw not in before and mine & {clash.path, clash.other}
        ]
        for clash in found[:MAX_FINDINGS]:
            path = clash.path if clash.path in mine else clash.other
            yield self.finding(
                path=path,
                line=line_of(case, path, clash.field),
                saw=clash.saw,
                want=clash.want,
            )


def _clashes(manifests: Mapping[str, Manifest]) -> Iterator[_Clash]:
    yield from _same_names(manifests)
    yield from _shared_roots(manifests)


def _same_names(manifests: Mapping[str, Manifest]) -> Iterator[_Clash]:
    first: dict[str, str] = {}
    for path, manifest in manifests.items():
        other = first.setdefault(manifest.name, path)
        if other != path:
            saw = f"the name '{manifest.name}' in `{other}` and `{path}`"
            yield _Clash(path, other, saw, "one manifest of each name", ("name",))


def _shared_roots(manifests: Mapping[str, Manifest]) -> Iterator[_Clash]:
    """One clash per root that lies in another: its nearest one, in the order of the paths."""
    roots = sorted(
        (fold(root), path, root) for path, m in manifests.items() for root in m.code.roots
    )
    around: list[tuple[str, str, str]] = []
    for folded, path, root in roots:
        while around and not _holds(around[-1][0], folded):
            around.pop()
        if around:
            _, other, outer = around[-1]
            saw = f"the root `{root}` of `{path}` and the root `{outer}` of `{other}`"
            yield _Clash(path, other, saw, "disjoint roots", ("code", "roots"))
        around.append((folded, path, root))


def _holds(outer: str, inner: str) -> bool:
    return inner.startswith(outer) if outer.endswith("/") else inner == outer

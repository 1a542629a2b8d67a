# SPDX-License-Identifier: Apache-2.0
"""What a change lets through that its base does not, for `fasttrack scope diff`."""

from collections.abc import Iterator

from fasttrack.case import ManifestSet
from fasttrack.manifest.widening import widenings
from fasttrack.report.style import Style
from fasttrack.report.visible import visible


def widening_text(base: ManifestSet, head: ManifestSet, style: Style) -> str:
    """One block per manifest; a change that only narrows says so."""
    return "\n".join(_lines(base, head, style)) + "\n"


def _lines(base: ManifestSet, head: ManifestSet, style: Style) -> Iterator[str]:
    if not head.files:
        yield "no manifests"
    for path, error in head.broken.items():
        yield f"{visible(path)}: does not parse"
        for problem in error.problems:
            yield from style.wrapped(visible(str(problem)), "  ")
    for path, manifest in head.valid.items():
        found = widenings(base.valid.get(path), manifest)
        yield f"{visible(path)}: {len(found) or 'no'} widenings"
        for widening in found:
            who = "a person decides" if widening.needs_human else "evidence decides"
            text = (
                f"{widening.kind.value}: {widening.saw}; not wider would be {widening.want} ({who})"
            )
            yield from style.wrapped(visible(text), "  ")

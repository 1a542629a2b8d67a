# SPDX-License-Identifier: Apache-2.0
"""The result of `fasttrack audit`, for people and for programs."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from fasttrack.audit.finding import Finding, Verdict
from fasttrack.audit.launches import Hazard
from fasttrack.audit.run import Outcome
from fasttrack.report.style import Style
from fasttrack.report.visible import visible

_COLOURS = {Verdict.PROVED: "green", Verdict.VIOLATED: "red", Verdict.UNPROVEN: "yellow"}
_STEPS = 12
"""Most steps of a path that are printed; the JSON has them all."""


@dataclass(frozen=True, slots=True)
class Report:
    """All that one run found.

    Attributes:
        outcomes: of each kernel.
        hazards: launches without the order that they need.
        recorded: whether recorded launches were given.
    """

    outcomes: Sequence[Outcome]
    hazards: Sequence[Hazard]
    recorded: bool

    @property
    def unordered(self) -> Sequence[str]:
        """Kernels that may start early of which nothing says what runs beside them."""
        early = [one.audited.kernel for one in self.outcomes if _starts_early(one)]
        return [] if self.recorded else sorted(set(early))


def _starts_early(outcome: Outcome) -> bool:
    named = outcome.named
    return named is not None and named.contract.pdl and not named.contract.neighbours


def audit_text(report: Report, style: Style) -> str:
    """Every kernel with its findings, and a line that counts them."""
    lines = [line for outcome in report.outcomes for line in _kernel(outcome, style)]
    for hazard in report.hazards:
        kind = style.paint(hazard.kind, "red")
        lines.append(f"{kind} on {visible(hazard.buffer)}  {visible(hazard.source)}")
        lines += [*style.wrapped(visible(hazard.why), "  "), ""]
    if report.unordered:
        names = ", ".join(map(visible, report.unordered))
        lines += style.wrapped(
            f"order between launches not checked for {names}: its contract names no neighbours, "
            "and there is no --launches", "note ",
        )  # fmt: skip
    audited = [one.audited.verdict for one in report.outcomes]
    counts = [f"{audited.count(kind)} {kind}" for kind in Verdict]
    waived = sum(one.waiver is not None for one in report.outcomes)
    kernels = "1 kernel" if len(audited) == 1 else f"{len(audited)} kernels"
    lines.append(f"{kernels}: {', '.join(counts)}" + (f" ({waived} waived)" if waived else ""))
    return "\n".join(lines) + "\n"


def audit_json(report: Report) -> str:
    """The same as JSON: sorted keys, a newline at the end."""
    record = {
        "audit": 1,
        "kernels": [_record(outcome) for outcome in report.outcomes],
        "hazards": [asdict(hazard) for hazard in report.hazards],
        "unordered": report.unordered,
    }
    return json.dumps(record, indent=2, sort_keys=True) + "\n"


def _record(outcome: Outcome) -> dict[str, Any]:
    waiver = outcome.waiver.model_dump(mode="json") if outcome.waiver is not None else None
    return {
        "file": outcome.file,
        "contract": outcome.named.source if outcome.named is not None else None,
        "waiver": waiver,
        "no_waiver": outcome.no_waiver,
        "toolchain": asdict(outcome.toolchain),
        **asdict(outcome.audited),
    }


def _kernel(outcome: Outcome, style: Style) -> Iterator[str]:
    one = outcome.audited
    verdict = style.paint(one.verdict, _COLOURS[one.verdict])
    waived = " (waived)" if outcome.waiver is not None else ""
    yield f"{verdict}{waived}  {visible(one.kernel)}  {one.arch}  {visible(outcome.file)}"
    for name, places in (("waits", one.waits), ("triggers", one.triggers), ("fences", one.fences)):
        if places:
            yield f"  {name:<8} {_places(places)}"
    if outcome.waiver is not None:
        said = f"{outcome.waiver.reason} ({outcome.waiver.owner}, to {outcome.waiver.expires})"
        yield from style.wrapped(visible(said), "  waiver   ")
    if outcome.no_waiver:
        yield from style.wrapped(f"does not hold: {outcome.no_waiver}", "  waiver   ")
    for finding in one.findings:
        yield from _finding(finding, style)
    if one.skeleton:
        yield f"  skeleton {one.skeleton}"
    yield ""


def _finding(finding: Finding, style: Style) -> Iterator[str]:
    place = f" 0x{finding.address:04x}" if finding.address is not None else ""
    source = finding.source
    line = f"  {visible(source.file)}:{source.line}" if source is not None else ""
    what = f"  {visible(finding.text)}" if finding.text else ""
    rule = style.paint(finding.rule, _COLOURS[finding.verdict])
    yield f"  {rule} {finding.verdict}{place}{what}{line}"
    if finding.parameter:
        yield f"    of   {visible(finding.parameter)}"
    for key, text in (("saw", finding.saw), ("want", finding.want), ("fix", finding.fix)):
        yield from style.wrapped(visible(text), f"    {key:<5}")
    if finding.path:
        yield from style.wrapped(_places(finding.path), "    path ")


def _places(addresses: Sequence[int]) -> str:
    shown = [f"0x{address:04x}" for address in addresses[:_STEPS]]
    rest = len(addresses) - len(shown)
    return " ".join(shown) + (f" and {rest} more" if rest else "")

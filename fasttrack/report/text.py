# SPDX-License-Identifier: Apache-2.0
"""The verdict for a terminal: what was decided, why, and the next command."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from fasttrack.evidence.status import Status
from fasttrack.finding import Level
from fasttrack.report.record import CellRecord, FindingRecord, VerdictRecord
from fasttrack.report.style import Style
from fasttrack.verdict import Outcome

_COLOURS = {
    Outcome.FAST_TRACK: "green",
    Outcome.NEEDS_EVIDENCE: "yellow",
    Outcome.ORDINARY_REVIEW: "yellow",
    Outcome.REFUSED: "red",
}
_LEVEL_COLOURS = {Level.BLOCK: "red", Level.ROUTE: "yellow", Level.NOTE: "cyan"}
_MEANINGS = {
    Outcome.FAST_TRACK: "eligible: inside the scope, nothing owed that is not there",
    Outcome.NEEDS_EVIDENCE: "inside the scope; the cells below lack signed evidence",
    Outcome.ORDINARY_REVIEW: "a person must read the lines below before this merges",
    Outcome.REFUSED: "must not merge unchanged by any route",
}
_OUT_OF_LANE = "none of our business: no manifest or governed root is touched"


def text_report(record: VerdictRecord, style: Style, *, asked: bool = False) -> str:
    """The whole report, ending in a newline.

    Args:
        record: the verdict.
        style: how wide and in which colours.
        asked: code of the change was to run, so what did not is told too.
    """
    return "\n".join(_lines(record, style, asked)) + "\n"


def _lines(record: VerdictRecord, style: Style, asked: bool) -> Iterator[str]:
    meaning = _MEANINGS[record.verdict] if record.in_lane else _OUT_OF_LANE
    head = style.paint(record.verdict.value, _COLOURS[record.verdict])
    yield f"{head}  {meaning}"
    if record.provisional:
        yield "provisional: the policy was handed in, it is not the target branch's own"
    yield (
        f"change {record.change_digest[:12]}  base {record.base.tip[:12]}  "
        f"head {record.head.commit[:12]}  as of {record.as_of}"
    )
    if record.in_lane:
        yield from _judgement(record, style, asked)
    if record.next:
        yield ""
    for step in record.next:
        lead = f"{style.paint('next', 'cyan')} "
        if step.command:
            yield lead + step.command
            yield from style.wrapped(step.why, "     ")
        else:
            yield from style.wrapped(step.why, lead)


def _judgement(record: VerdictRecord, style: Style, asked: bool) -> Iterator[str]:
    for finding in record.findings:
        yield ""
        yield from _finding(finding, style)
    yield from _coverage(record, style)
    yield ""
    ran = asdict(record.executed)
    if asked or set(ran.values()) != {"not-run"}:
        parts = (f"{part.replace('_', ' ')} {outcome}" for part, outcome in ran.items())
        yield from style.wrapped(", ".join(parts), "executed: ")
    yield from style.wrapped(_budget(record), "budget: ")


def _finding(finding: FindingRecord, style: Style) -> Iterator[str]:
    level = style.paint(finding.level.value, _LEVEL_COLOURS[finding.level])
    place = f"  {finding.path}" if finding.path else ""
    if finding.line:
        place += f":{finding.line}"
        if finding.end_line > finding.line:
            place += f"-{finding.end_line}"
    yield f"{level} {finding.rule} {finding.slug}{place}"
    for name, value in (("saw", finding.saw), ("want", finding.want), ("fix", finding.fix)):
        yield from style.wrapped(value, f"  {name:<5}")


def _coverage(record: VerdictRecord, style: Style) -> Iterator[str]:
    coverage = record.coverage
    if coverage.owed or coverage.unknown:
        yield ""
    for reason in coverage.unknown:
        yield from style.wrapped(f"could not tell what is owed: {reason}", "evidence: ")
    if not coverage.owed:
        return
    yield f"evidence: {coverage.owed} cells owed, {coverage.covered} covered"
    something = any(statuses.keys() - {Status.MISSING} for statuses in coverage.statuses.values())
    for name, statuses in coverage.statuses.items() if something else ():
        table = ", ".join(f"{count} {status}" for status, count in statuses.items())
        yield from style.wrapped(table, f"  {name:<12}")
    groups: dict[tuple[str, ...], list[CellRecord]] = defaultdict(list)
    for cell in coverage.missing:
        groups[cell.manifest, cell.kind, _unit(cell), cell.region, cell.status].append(cell)
    for _, cells in sorted(groups.items()):
        yield from style.wrapped(_group(cells), "  missing ")


def _group(cells: Sequence[CellRecord]) -> str:
    """Cells that lack the same, with the first one's reason standing for all."""
    first, many = cells[0], "" if len(cells) == 1 else "s"
    where = f" in {first.region}" if first.region else ""
    text = f"{len(cells)} {first.kind} cell{many} of {_unit(first)}{where} ({first.manifest})"
    return text if first.status is Status.MISSING else f"{text}; {first.status}: {first.detail}"


def _unit(cell: CellRecord) -> str:
    return str(cell.key.get("unit", "the whole path"))


def _budget(record: VerdictRecord) -> str:
    parts = [
        f"{name.replace('_', ' ')} {'?' if use.used < 0 else use.used}/{use.limit}"
        for name, use in record.budget.items()
    ]
    return ", ".join(parts)

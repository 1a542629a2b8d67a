# SPDX-License-Identifier: Apache-2.0
"""FT102: a wired file changes only inside the symbols that its wiring names."""

from collections.abc import Iterator, Sequence

from fasttrack.case import Case
from fasttrack.change.linediff import kept_lines
from fasttrack.change.tree import Entry
from fasttrack.errors import FactUnavailable
from fasttrack.finding import Finding, Level
from fasttrack.rules.base import EntryRule
from fasttrack.rules.confinement.readable import is_python, is_regular
from fasttrack.rules.confinement.symbol_lines import Row, surroundings
from fasttrack.rules.confinement.wired import allowance


class WiringSymbol(EntryRule):
    """Changed lines of wired files outside the allowed symbols."""

    id = "FT102"
    slug = "wiring-symbol"
    title = "wired files change only inside the allowed symbols"
    level = Level.ROUTE
    refuses = (
        "An added or removed line of a wired file that does not lie in an allowed function, class "
        "or assignment (decorators count, lines shared with other code do not), or an old line "
        "beside one that a string, bracket or continuation draws into it; a wired file that is "
        "added, deleted or replaced; an allowed symbol that is missing, moves between the lines "
        "around it, or is defined more or less often than before."
    )
    why = (
        "The policy opened one place of a shared file, not the file. A line beside it runs for "
        "every model."
    )
    blind = (
        "What the lines inside the symbol do. Files that are not Python are never told apart: the "
        "rule answers 'could not tell'."
    )
    fix = "keep the edit inside the wired symbol, or ask for a wider one in a policy change"

    def check_entry(self, case: Case, entry: Entry) -> Iterator[Finding]:
        """Compares what surrounds the symbols on both sides."""
        allowed = allowance(case, entry.path)
        if allowed is None:
            return
        want = "changes inside " + ", ".join(f"`{symbol}`" for symbol in allowed.symbols)
        if not (is_regular(entry.old) and is_regular(entry.new)):
            yield self.finding(
                path=entry.path, saw="the wired file is added, deleted or replaced", want=want
            )
            return
        if not is_python(entry.path):
            raise FactUnavailable("symbols can be located in Python files only")
        old = surroundings(case.change.text(entry.old), allowed.symbols)
        new = surroundings(case.change.text(entry.new), allowed.symbols)
        same_number = True
        for symbol in allowed.symbols:
            before, after = old.definitions[symbol], new.definitions[symbol]
            if not before or before != after:
                same_number = False
                saw = f"`{symbol}` is defined {before} times before and {after} times after"
                yield self.finding(path=entry.path, saw=saw, want=want)
        lost, gained = _different(new.rows, old.rows), _different(old.rows, new.rows)
        yield from self._outside(entry, lost, "removed", want)
        yield from self._outside(entry, gained, "added", want)
        moved = [row for row in gained if row.symbol]
        if moved and same_number:
            saw = f"`{moved[0].symbol}` is at another place between the lines around it"
            yield self.finding(path=entry.path, line=moved[0].number, saw=saw, want=want)

    def _outside(
        self, entry: Entry, rows: Sequence[Row], verb: str, want: str
    ) -> Iterator[Finding]:
        lines = [row for row in rows if not row.symbol]
        if lines:
            first = lines[0].number
            yield self.finding(
                path=entry.path,
                line=first if verb == "added" else 0,
                saw=f"{len(lines)} {verb} lines outside the allowed symbols, first line {first}",
                want=want,
                content="\n".join(row.text.decode() for row in lines),
            )


def _different(old: Sequence[Row], new: Sequence[Row]) -> list[Row]:
    """The rows of `new` that `old` does not have at that place; none only for equal texts."""
    kept = kept_lines([row.text for row in old], [row.text for row in new])
    return [row for row, same in zip(new, kept, strict=True) if not same]

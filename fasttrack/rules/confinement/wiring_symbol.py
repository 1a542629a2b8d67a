# SPDX-License-Identifier: Apache-2.0
"""FT102: a wired file changes only inside the symbols that its wiring names."""

from collections.abc import Iterator

from fasttrack.case import Case
from fasttrack.change.tree import Entry
from fasttrack.errors import FactUnavailable
from fasttrack.finding import Finding, Level
from fasttrack.rules.base import EntryRule
from fasttrack.rules.confinement.readable import is_python, is_regular, reversed_entry
from fasttrack.rules.confinement.symbol_lines import SymbolLines, symbol_lines
from fasttrack.rules.confinement.wired import allowance


class WiringSymbol(EntryRule):
    """Changed lines of wired files outside the allowed symbols."""

    id = "FT102"
    slug = "wiring-symbol"
    title = "wired files change only inside the allowed symbols"
    level = Level.ROUTE
    refuses = (
        "An added or removed line of a wired file that does not lie in an allowed function, class "
        "or assignment (decorators count, lines shared with other code do not); a wired file that "
        "is added, deleted or replaced; an allowed symbol that is missing on one side or defined "
        "more often than before."
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
    false_alarms = "not measured yet"

    def check_entry(self, case: Case, entry: Entry) -> Iterator[Finding]:
        """Compares the changed lines of both sides with the symbols' lines there."""
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
        new = _symbols(case, entry, allowed.symbols)
        old = _symbols(case, reversed_entry(entry), allowed.symbols)
        for symbol in allowed.symbols:
            before, after = old[symbol].definitions, new[symbol].definitions
            if not before or not after or after > before:
                saw = f"`{symbol}` is defined {before} times before and {after} times after"
                yield self.finding(path=entry.path, saw=saw, want=want)
        yield from self._outside(case, reversed_entry(entry), old, "removed", want)
        yield from self._outside(case, entry, new, "added", want)

    def _outside(
        self, case: Case, entry: Entry, symbols: dict[str, SymbolLines], verb: str, want: str
    ) -> Iterator[Finding]:
        inside = frozenset[int]().union(*(found.lines for found in symbols.values()))
        lines = [a for a in case.change.added_lines(entry) if a.number not in inside]
        if lines:
            first = lines[0].number
            yield self.finding(
                path=entry.path,
                line=first if verb == "added" else 0,
                saw=f"{len(lines)} {verb} lines outside the allowed symbols, first line {first}",
                want=want,
                content="\n".join(line.text for line in lines),
            )


def _symbols(case: Case, entry: Entry, symbols: tuple[str, ...]) -> dict[str, SymbolLines]:
    source = case.change.text(entry.new)
    return {symbol: symbol_lines(source, symbol) for symbol in symbols}

# SPDX-License-Identifier: Apache-2.0
"""What only the text of `nvdisasm` tells: source lines, and where indirect branches go."""

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from fasttrack.audit.program import SourceLine
from fasttrack.audit.read.tools import ask
from fasttrack.errors import FactUnavailable

_SECTION = re.compile(r"\.text\.(?P<name>\S+?):$")
_LABEL = re.compile(r"(?P<label>\.L_x_\d+):$")
_LINE = re.compile(r'//## File "(?P<file>[^"]*)", line (?P<line>\d+)')
_AT = re.compile(r"\s*/\*(?P<address>[0-9a-f]{4,})\*/")
_GOES = re.compile(r'BRANCH_TARGETS (?P<labels>[^"]*)"')


@dataclass
class Notes:
    """Notes on one kernel.

    Attributes:
        lines: source line by the address of an instruction.
        jumps: addresses that an indirect branch may go to, by its own.
    """

    lines: dict[int, SourceLine] = field(default_factory=dict)
    jumps: dict[int, tuple[int, ...]] = field(default_factory=dict)


def notes_of(data: bytes, *, lines: bool) -> Mapping[str, Notes]:
    """Notes on each kernel of a cubin; none where the tool can not write its text.

    Args:
        data: the cubin.
        lines: whether it has line information.
    """
    try:
        text = ask("nvdisasm", ("-c", "-g") if lines else ("-c",), data)
    except FactUnavailable:
        return defaultdict(Notes)
    found: dict[str, list[str]] = {}
    rows: list[str] = []
    for row in text.splitlines():
        match = _SECTION.match(row)
        rows = found.setdefault(match["name"], []) if match else rows
        rows.append(row)
    return defaultdict(Notes, {name: _notes(rows) for name, rows in found.items()})


def _notes(rows: list[str]) -> Notes:
    notes, labels = Notes(), _Labels()
    line: SourceLine | None = None
    goes: dict[int, list[str]] = {}
    for row in rows:
        if match := _LABEL.match(row):
            labels.waiting.append(match["label"])
        elif match := _LINE.search(row):
            line = SourceLine(match["file"], int(match["line"]))
        elif match := _AT.match(row):
            address = int(match["address"], 16)
            labels.lie_at(address)
            if line is not None:
                notes.lines[address] = line
            if jump := _GOES.search(row):
                goes[address] = jump["labels"].split(",")
    for address, wanted in goes.items():
        if all(label in labels.at for label in wanted):
            notes.jumps[address] = tuple(labels.at[label] for label in wanted)
    return notes


@dataclass
class _Labels:
    """Labels, and the instructions that they stand before."""

    at: dict[str, int] = field(default_factory=dict)
    waiting: list[str] = field(default_factory=list)

    def lie_at(self, address: int) -> None:
        """All labels since the last instruction are this one's."""
        self.at.update(dict.fromkeys(self.waiting, address))
        self.waiting.clear()

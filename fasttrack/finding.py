# SPDX-License-Identifier: Apache-2.0
"""What a rule reports: data, from which every report makes its words."""

import hashlib
from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How far a finding holds a change back."""

    BLOCK = "block"
    """Must not merge by any route unchanged."""
    ROUTE = "route"
    """An ordinary review must read these lines."""
    NOTE = "note"
    """Worth knowing; holds nothing back."""


@dataclass(frozen=True)
class Finding:
    """One finding of one rule.

    Attributes:
        rule: rule id, such as `FT104`.
        slug: the rule's name, such as `symlink`.
        level: how far it holds the change back.
        path: repository path, `/`-separated; empty when the finding is about the whole change.
        line: first line in the new file, 1-based; 0 when the finding is about the whole path.
        end_line: last line, inclusive; 0 with `line` 0.
        saw: what is there.
        want: what would pass.
        fix: the next command or edit.
        fingerprint: 16 hexadecimal digits over rule, path and the judged content, without line
            numbers: stable while the content stays, gone when it changes. Waivers name it.
        unknown: a fact is missing and the rule could not tell; neither policy nor waiver lowers it.
    """

    rule: str
    slug: str
    level: Level
    path: str
    line: int
    end_line: int
    saw: str
    want: str
    fix: str
    fingerprint: str
    unknown: bool = False

    @property
    def message(self) -> str:
        """One sentence for annotations and logs."""
        return f"saw {self.saw}; want {self.want}"

    @property
    def sort_key(self) -> tuple[str, int, str, str, str]:
        """Order of every report: by path, then line, then rule."""
        return (self.path, self.line, self.rule, self.saw, self.fingerprint)


def fingerprint(rule: str, path: str, content: str) -> str:
    """A stable name of a finding: rule, path and the content that was judged."""
    record = "\0".join((rule, path, content)).encode("utf-8", "surrogateescape")
    return hashlib.sha256(record).hexdigest()[:16]

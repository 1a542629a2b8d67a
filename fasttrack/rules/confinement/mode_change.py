# SPDX-License-Identifier: Apache-2.0
"""FT106: no file becomes or stops being executable."""

from collections.abc import Iterator

from fasttrack.case import Case
from fasttrack.change.tree import Entry
from fasttrack.finding import Finding, Level
from fasttrack.rules.base import EntryRule
from fasttrack.rules.confinement.readable import is_python, is_regular, text_of

PLAIN_MODE = "100644"


class ModeChange(EntryRule):
    """Modes other than that of a plain file."""

    id = "FT106"
    slug = "mode-change"
    title = "files keep their mode, and new ones are plain"
    level = Level.ROUTE
    refuses = (
        "A file that is added with a mode other than 100644, or whose mode changes between "
        "plain and executable, unless a Python file becomes plain that has no `#!` line and could "
        "not be run by its name. Links and submodules are FT104 and FT105."
    )
    why = (
        "An executable file is meant to be run by hand or by a hook. A mode changes no line, so a "
        "reader of the lines does not see it."
    )
    blind = "Files that are run without being executable, as `python FILE` does."
    fix = "git update-index --chmod=-x PATH"

    def check_entry(self, case: Case, entry: Entry) -> Iterator[Finding]:
        """Reports one unusual or changed mode."""
        if not is_regular(entry.new) or (entry.old.present and not is_regular(entry.old)):
            return
        if entry.added and entry.new.mode != PLAIN_MODE:
            saw = f"a new file with mode {entry.new.mode}"
        elif entry.mode_changed and not _was_never_run(case, entry):
            saw = f"mode {entry.old.mode} became {entry.new.mode}"
        else:
            return
        yield self.finding(
            path=entry.path, saw=saw, want=f"mode {PLAIN_MODE}, or no change of mode"
        )


def _was_never_run(case: Case, entry: Entry) -> bool:
    """Whether a Python file loses a bit that was of no use, because no interpreter is named."""
    if entry.new.mode != PLAIN_MODE or not is_python(entry.path):
        return False
    texts = [text_of(case, side) for side in (entry.old, entry.new)]
    return all(text is not None and not text.startswith("#!") for text in texts)

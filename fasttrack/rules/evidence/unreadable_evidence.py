# SPDX-License-Identifier: Apache-2.0
"""FT503: every line of evidence can be read, and the store has room for it."""

from collections.abc import Iterator, Sequence

from fasttrack.case import Case
from fasttrack.config import judged_or_head
from fasttrack.errors import FactUnavailable, Problem
from fasttrack.finding import Finding, Level
from fasttrack.rules.base import Rule
from fasttrack.rules.evidence.altered_evidence import misnamed
from fasttrack.rules.evidence.told import brought_entries


class UnreadableEvidence(Rule):
    """Evidence that the change brings and that nobody can read, or need read."""

    id = "FT503"
    slug = "unreadable-evidence"
    title = "every line of evidence can be read"
    level = Level.ROUTE
    refuses = (
        "An evidence file that is too large, as it lies there or unpacked, has too many lines, is "
        "no regular file, is damaged where it is compressed or has more in it than its lines, or "
        "lies where no store is read; a line of it that is no signed statement of a known kind; a "
        "line that repeats one of another brought line, or of a file of the target that stays, "
        "with no good signature that was not there; and a store that is larger after the merge "
        "than is read."
    )
    why = (
        "It counts for nothing and stays for ever, and as evidence it is in no digest that an "
        "approval binds to. What is repeated fills the store, and of one that is full the evidence "
        "of honest changes is left unread."
    )
    blind = (
        "Whose word a line is, and what it is worth; the other rules of this family say that. And "
        "bits of a compressed file that unpack to nothing."
    )
    fix = "`fasttrack evidence verify FILE` names the lines; leave the file out, or sign again"
    waivable = False

    def check(self, case: Case) -> Iterator[Finding]:
        """Reports each file once, with the first thing that is wrong with it, then the store."""
        if not case.evidence_entries:
            return
        from fasttrack.evidence.known import known_evidence  # noqa: PLC0415
        from fasttrack.evidence.repeats import repeats  # noqa: PLC0415
        from fasttrack.evidence.store import FOLDER  # noqa: PLC0415

        known = case.once(known_evidence)
        if known.unknown:
            yield self.could_not_tell(FactUnavailable(known.unknown))
        problems: dict[str, list[Problem]] = {}
        for problem in (*known.brought.problems, *repeats(known)):
            problems.setdefault(problem.where.partition(":")[0], []).append(problem)
        store = f"{case.config.folder}/{FOLDER}/"
        brought = [*brought_entries(case)]
        for entry in brought:
            if not entry.path.startswith(store):
                saw = f"a file beside `{store}`, which no store reads"
                yield self.finding(path=entry.path, saw=saw, want=f"a file in `{store}`")
            elif not misnamed(case, entry):  # nothing of such a file is read; FT501 reports it
                found = problems.get(entry.path.removeprefix(store), [])
                yield from self._first(entry.path, found)
        if brought:
            yield from self._room(case, store.removesuffix("/"))

    def _room(self, case: Case, store: str) -> Iterator[Finding]:
        """Whether all that the store then holds is read."""
        from fasttrack.evidence.store import MAX_STORE_BYTES, is_too_large  # noqa: PLC0415

        if is_too_large(judged_or_head(case.change), store, case.change.blob):
            yield self.finding(
                saw=f"a store of over {MAX_STORE_BYTES:,} bytes after the merge, unpacked",
                want="one that is read to its end",
                fix="`fasttrack evidence gc --delete` takes away what is of no use any more",
            )

    def _first(self, path: str, problems: Sequence[Problem]) -> Iterator[Finding]:
        if not problems:
            return
        line, _, field = problems[0].where.partition(":")[2].partition(":")
        place = f"{field.strip()}: " if field else ""
        more = f", and {len(problems) - 1} more" if len(problems) > 1 else ""
        saw = f"{place}{problems[0].saw}{more}"
        want, fix = problems[0].want, problems[0].fix
        yield self.finding(path=path, line=int(line or 0), saw=saw, want=want, fix=fix)

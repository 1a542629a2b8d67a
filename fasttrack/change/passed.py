# SPDX-License-Identifier: Apache-2.0
"""What each commit of a change did on the way, also where neither end of the change shows it.

A change of several commits can land as they are: by a fast-forward, or each rebased. Then each of
them was the target branch for a while. All commits count that the head has and the target has not,
also those that were merged into the branch, as rebasing makes one line of them. What one of them
does is told against its parent. A merge does what differs from all of its parents: what it takes
from one of them was there, or is told of the commit that did it.

A branch can also start at a commit that was merged into the target and never was the target
itself. Where the head can be the next tip as it is, that commit would be among the target's own,
and counts with all in which it differs from the merge base.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fasttrack.change.git import Git
from fasttrack.change.tree import Entry, raw_entries_of_commits
from fasttrack.errors import FactUnavailable

COMMITS_LIMIT = 500
"""Commits of one change that are looked at."""
BYTES_LIMIT = 16 * 1024 * 1024
"""Bytes of the list of what they do."""

Parents = Mapping[str, Sequence[str]]
"""Commits to their parents, newest first."""


@dataclass(frozen=True)
class Passed:
    """What one commit does to one path.

    Attributes:
        commit: its id.
        entry: the path before and after it.
    """

    commit: str
    entry: Entry


def commits_between(git: Git, bases: Sequence[str], head: str) -> Parents:
    """The commits that a head has beyond some others, with their parents, itself among them.

    Raises:
        FactUnavailable: more than `COMMITS_LIMIT`.
    """
    options = ("--parents", "--topo-order", f"--max-count={COMMITS_LIMIT + 1}")
    out = git.run("rev-list", *options, head, *(f"^{base}" for base in bases), "--").out
    rows = [line.split() for line in out.decode("ascii").splitlines()]
    if len(rows) > COMMITS_LIMIT:
        raise FactUnavailable(f"the change has over {COMMITS_LIMIT} commits")
    return {commit: parents for commit, *parents in rows}


def passed(git: Git, commits: Parents) -> Iterator[Passed]:
    """What each of some commits does.

    Raises:
        FactUnavailable: too much, or trees that are not in this clone.
    """
    pairs = [(commit, parent) for commit, found in commits.items() for parent in found or ("",)]
    asked = "".join(f"{commit} {parent}".rstrip() + "\n" for commit, parent in pairs)
    options = ("--stdin", "--root", "-r", "-z", "--raw", "--no-renames", "--no-abbrev")
    raw = git.run("diff-tree", *options, stdin=asked.encode("ascii"), limit=BYTES_LIMIT).out
    from_parents: Counter[tuple[str, str]] = Counter()
    for commit, entry in raw_entries_of_commits(raw):
        from_parents[commit, entry.path] += 1
        if from_parents[commit, entry.path] == max(1, len(commits[commit])):
            yield Passed(commit, entry)

# SPDX-License-Identifier: Apache-2.0
"""Read one change: the main flow of this package.

with read_change(Path(".")) as change:
    for entry in change.entries: ...
"""

from pathlib import Path

from fasttrack.change.change import Change
from fasttrack.change.git import Git
from fasttrack.change.history import History
from fasttrack.change.patch import apply_patch
from fasttrack.errors import FactUnavailable, InputError

DEFAULT_TARGETS = ("refs/remotes/origin/HEAD", "refs/heads/main")
"""Where the target branch is looked for when nobody names it; full names, so that no tag or other
branch can stand in for them."""


def read_change(
    repo: Path,
    *,
    target: str | None = None,
    base: str | None = None,
    head: str = "HEAD",
    policy_from: str | None = None,
    patch: Path | None = None,
    onto: str | None = None,
) -> Change:
    """The change from the merge base of target branch and head, to head.

    Args:
        repo: a directory inside a git repository, a worktree or a bare clone; only read.
        target: the target branch; by default `origin/HEAD`, else `main`.
        base: the change starts at the merge base of this and head, instead of target's.
        head: the revision to judge; not used with `patch`.
        policy_from: revision to use as the tip of the target branch.
        patch: judge this patch file instead of `head`; needs `onto`.
        onto: revision to which `patch` is applied.

    Raises:
        InputError: no git or repository, a revision that is not there or unclear, a clone that
            lacks the merge base, unrelated histories, a patch that does not apply exactly.
    """
    if (patch is None) != (onto is None):
        raise InputError.one("--patch", "--patch and --onto apart", "both or none of them")
    git = Git(repo)
    try:
        # (1) Names become commit ids, all at once: refs may move while we read.
        start, tip, judged = _commits(git, target, base, policy_from, onto or head)
        # (2) A patch becomes a commit.
        if patch is not None:
            judged = apply_patch(git, patch, judged)
        # (3) Where the change starts.
        history = History(git)
        bases = _common_commits(history, start, judged)
        # (4) What differs; everything else is read when a rule asks.
        return Change(git, history, tip, bases, judged)
    except FactUnavailable as reason:
        git.close()
        want, fix = "trees that are all in this clone", "git fetch --refetch --no-filter"
        raise InputError.one("change", str(reason), want, fix) from reason
    except BaseException:
        git.close()
        raise


def read_revision(repo: Path, revision: str = "HEAD") -> Change:
    """One revision as the change of nothing: its files, and policy and manifests as of it.

    Needs no target branch and no history. Raises InputError as `read_change` does.
    """
    return read_change(repo, base=revision, head=revision, policy_from=revision)


def _commits(
    git: Git, target: str | None, base: str | None, policy_from: str | None, head: str
) -> tuple[str, str, str]:
    """Ids of the commit that the merge base is taken with, of the target's tip, and of head."""
    targets = (target,) if target else DEFAULT_TARGETS
    named = [name for name in (base, policy_from, head) if name is not None]
    revisions = (*named, *targets)
    commits = dict(zip(revisions, git.resolve(revisions), strict=True))
    for name in named:
        if commits[name] is None:
            raise _no_commit(git, name)
    tips = [oid for oid in (commits[name] for name in targets) if oid]
    tip = commits[policy_from] if policy_from else next(iter(tips), None)
    # Who names the tip of the target branch has named the target branch.
    start = commits[base] if base else tip
    judged = commits[head]
    if not start or not tip or not judged:
        raise _no_commit(git, target) if target else _no_target(git)
    return start, tip, judged


def _common_commits(history: History, start: str, head: str) -> tuple[str, ...]:
    bases = history.merge_bases(start, head)
    if not bases:
        raise InputError.one(
            f"{start}...{head}",
            "histories without a common commit",
            "a head that was branched from the target branch",
            "rebase it, or name another --base",
        )
    return bases


def _no_target(git: Git) -> InputError:
    return InputError.one(
        str(git.repo),
        "neither origin/HEAD nor a branch `main`",
        "a target branch, whose tip has the policy",
        "--policy-from BRANCH, such as master; or once: git remote set-head origin --auto",
    )


def _no_commit(git: Git, name: str) -> InputError:
    if name == "HEAD":
        want, fix = "at least one commit on this branch", "git commit, or --head REF"
    else:
        want, fix = "a branch, tag or commit of this clone", f"git fetch origin {name}"
    return InputError.one(str(git.repo), f"no commit {name}", want, fix)

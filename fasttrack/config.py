# SPDX-License-Identifier: Apache-2.0
"""Finds policy and manifests in the trees of a change."""

import tomllib
from collections.abc import Callable
from pathlib import Path

from fasttrack.case import Config, ManifestFile, ManifestSet, text_digest
from fasttrack.change.change import Change
from fasttrack.change.tree import Tree
from fasttrack.errors import FactUnavailable, InputError, Problem
from fasttrack.manifest.load import load_manifest
from fasttrack.policy.load import load_policy

SEARCH_ORDER = (".github/fasttrack", "manifests")
"""Folders that may hold the configuration, after the option and `[tool.fasttrack] dir`."""
POLICY_NAME = "policy.yaml"


def read_config(change: Change, *, folder: str | None, policy_file: Path | None) -> Config:
    """The policy in force: the target branch tip's, or the file handed in.

    Args:
        change: the change; its `base` is the tip.
        folder: configuration folder named by option, or None to search.
        policy_file: a policy outside the repository; the result is then provisional.

    Raises:
        InputError: when there is no policy, or it has problems.
    """
    found = folder.strip("/") if folder else _folder(change)
    if policy_file is not None:
        raw, source = _read_file(policy_file), policy_file.name
    else:
        path = f"{found}/{POLICY_NAME}"
        side = change.base.get(path)
        if side is None:
            raise InputError.one(
                f"{change.base_tip[:12]}:{path}",
                f"no policy at {change.base_tip[:12]}",
                "a policy on the target branch",
                "`fasttrack init` writes one; `--policy FILE` judges provisionally",
            )
        raw, source = change.blob(side), f"{change.base_tip[:12]}:{path}"
    return Config(found, load_policy(raw, source), text_digest(raw), policy_file is not None)


def read_base_manifests(change: Change, config: Config) -> ManifestSet:
    """The manifests at the target branch's tip.

    Raises:
        InputError: when one of them does not parse; nothing can be judged against it.
    """
    manifests = _manifests(change, change.base, config, change.base_tip[:12])
    problems = [p for error in manifests.broken.values() for p in error.problems]
    if problems:
        raise InputError(problems)
    return manifests


def read_head_manifests(change: Change, config: Config) -> ManifestSet:
    """The manifests after the merge.

    A manifest that does not parse is kept as its error; rule FT301 reports it.
    """
    return _manifests(change, judged_or_head(change), config, "")


def judged_or_head(change: Change) -> Tree:
    """The files after the merge, or the head's own when no merge is possible (FT126 reports it)."""
    try:
        return change.head_files if change.judged_tree is None else change.judged
    except FactUnavailable:
        return change.head_files


def _manifests(change: Change, tree: Tree, config: Config, revision: str) -> ManifestSet:
    prefix = config.folder + "/"
    paths = sorted(
        p
        for p in tree
        if p.startswith(prefix)
        and p.endswith(".yaml")
        and "/" not in p[len(prefix) :]
        and p != prefix + POLICY_NAME
    )
    return ManifestSet(tuple(_manifest(change, tree, path, revision) for path in paths))


def _manifest(change: Change, tree: Tree, path: str, revision: str) -> ManifestFile:
    side = tree.get(path)
    source = f"{revision}:{path}" if revision else path
    if side is None or not side.mode.startswith("100"):
        return ManifestFile(path, InputError.one(source, "not a regular file", "a manifest file"))
    try:
        return ManifestFile(path, load_manifest(change.blob(side), source))
    except InputError as error:
        return ManifestFile(path, error)


def find_folder(
    has: Callable[[str], bool], pyproject: Callable[[], str | None], source: str
) -> str:
    """The configuration folder of a tree: what `pyproject.toml` says, or the first that is there.

    Args:
        has: whether the tree has a file.
        pyproject: text of its `pyproject.toml`, None when there is none.
        source: how messages name that file.

    Raises:
        InputError: the file is no TOML, or names no folder.
    """
    text = pyproject()
    try:
        table = tomllib.loads(text or "")
    except tomllib.TOMLDecodeError as error:
        raise InputError.one(source, str(error), "valid TOML") from error
    named = table.get("tool", {}).get("fasttrack", {}).get("dir")
    if named is not None:
        if not isinstance(named, str) or not named.strip("/"):
            raise InputError.one(source, f"[tool.fasttrack] dir = {named!r}", "a folder's name")
        return named.strip("/")
    return next((f for f in SEARCH_ORDER if has(f"{f}/{POLICY_NAME}")), SEARCH_ORDER[-1])


def _folder(change: Change) -> str:
    def pyproject() -> str | None:
        side = change.base.get("pyproject.toml")
        return None if side is None else change.text(side)

    source = f"{change.base_tip[:12]}:pyproject.toml"
    return find_folder(lambda path: path in change.base, pyproject, source)


def _read_file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(
            [Problem(str(path), error.strerror or "unreadable", "a readable policy file")]
        ) from error

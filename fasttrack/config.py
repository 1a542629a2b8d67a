# SPDX-License-Identifier: Apache-2.0
"""Finds policy and manifests in the trees of a change."""

import re
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from fasttrack.case import Config, ManifestFile, ManifestSet, text_digest
from fasttrack.change.change import Change
from fasttrack.change.tree import Tree
from fasttrack.errors import FactUnavailable, InputError
from fasttrack.globs import check_pattern
from fasttrack.manifest.load import load_manifest
from fasttrack.policy.load import load_policy, with_sigstore_root
from fasttrack.policy.trust import ROOT_FILE
from fasttrack.strict_yaml.text import MAX_BYTES

SEARCH_ORDER = (".github/fasttrack", "manifests")
"""Folders that may hold the configuration, after the option and `[tool.fasttrack] dir`."""
POLICY_NAME = "policy.yaml"

TOML_LIMIT = 1024 * 1024
"""Characters of a pyproject.toml."""
_KEY_PART = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
_LONG_KEY = re.compile(rf"{_KEY_PART}(?:[ \t]*\.[ \t]*{_KEY_PART}){{64}}")
"""A dotted key, for which `tomllib` takes memory with the square of its parts."""


def read_config(change: Change, *, folder: str | None, policy_file: Path | None) -> Config:
    """The policy in force: the target branch tip's, or the file handed in.

    Args:
        change: the change; its `base` is the tip.
        folder: configuration folder named by option, or None to search.
        policy_file: a policy outside the repository; the result is then provisional.

    Raises:
        InputError: when there is no policy, or it has problems.
    """
    found = folder_name(folder, "--config-dir") if folder else _folder(change)
    if policy_file is not None:
        raw, source = read_file(policy_file), policy_file.name
        if not folder and f"{found}/{POLICY_NAME}" not in change.base:
            # A first policy: its folder is the one that the change brings.
            with needed("pyproject.toml"):
                found = _folder_of(change, change.head_files, "pyproject.toml")
    else:
        source = f"{change.base_tip[:12]}:{found}/{POLICY_NAME}"
        raw = _policy(change, f"{found}/{POLICY_NAME}", source)
    beside = None if policy_file is None else policy_file.parent

    def sigstore_root() -> bytes | None:
        if beside is not None:
            return file_or_none(beside / ROOT_FILE)
        with needed(source):
            return _blob_or_none(change, f"{found}/{ROOT_FILE}")

    policy = with_sigstore_root(load_policy(raw, source), sigstore_root)
    return Config(found, policy, text_digest(raw), policy_file is not None)


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
    with needed(f"the files of {revision or 'the merge'}"):
        listing = tuple(tree)
    paths = sorted(
        p
        for p in listing
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
        with needed(source):
            raw = change.blob(side)
        return ManifestFile(path, load_manifest(raw, source))
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
    named = _named_folder(pyproject() or "", source)
    if named is not None:
        return folder_name(named, f"{source} [tool.fasttrack] dir")
    return next((f for f in SEARCH_ORDER if has(f"{f}/{POLICY_NAME}")), SEARCH_ORDER[-1])


def moved_folder(change: Change) -> str:
    """Where the configuration would be looked for after the merge, in words, if elsewhere.

    Returns:
        An empty string when the search finds the folder that it finds at the target's tip, or
        when nothing is there yet that could move.
    """
    if not any(
        e.path == "pyproject.toml" or e.path.endswith(f"/{POLICY_NAME}") for e in change.entries
    ):
        return ""
    before = _folder(change)
    if f"{before}/{POLICY_NAME}" not in change.base:
        return ""
    try:
        after = _folder_of(change, judged_or_head(change), "pyproject.toml")
    except (InputError, FactUnavailable):
        return "nowhere, as pyproject.toml does not say where"
    return f"in `{after}`" if after != before else ""


def folder_name(named: object, where: str) -> str:
    """The one spelling of a folder that paths are compared with, without slashes at its ends.

    Raises:
        InputError: it is no text, or `.`, `..`, an empty segment or a wildcard would make it stand
            for another folder than it names.
    """
    name = named.strip("/") if isinstance(named, str) else ""
    if check_pattern(name) is not None or "*" in name or "?" in name:
        raise InputError.one(where, repr(named), "a folder's path from the repository's top")
    return name


def read_file(path: Path) -> bytes:
    """A configuration file from disk, up to the size that can be parsed at all.

    Raises:
        InputError: it can not be read, or is larger.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError.one(
            str(path), error.strerror or "unreadable", "a readable file"
        ) from error
    if len(raw) > MAX_BYTES:
        raise InputError.one(str(path), "a larger file", f"at most {MAX_BYTES:,} bytes")
    return raw


def file_or_none(path: Path) -> bytes | None:
    """The same, of a file that need not be there."""
    return read_file(path) if path.exists() else None


@contextmanager
def needed(where: str) -> Iterator[None]:
    """Turns a missing fact into bad input: without configuration nothing can be judged."""
    try:
        yield
    except FactUnavailable as reason:
        raise InputError.one(where, str(reason), "what can be read here and in bounds") from reason


def _named_folder(text: str, source: str) -> object:
    """The value of `[tool.fasttrack] dir`, of whatever type; None when it is not there."""
    if len(text) > TOML_LIMIT:
        raise InputError.one(source, f"{len(text):,} characters", f"at most {TOML_LIMIT:,}")
    if _LONG_KEY.search(text):
        raise InputError.one(source, "a key of more than 64 parts", "keys that people can read")
    try:
        found: object = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also numbers of thousands of digits
        raise InputError.one(source, str(error) or "nesting", "valid TOML") from error
    for key in ("tool", "fasttrack", "dir"):
        found = found.get(key) if isinstance(found, dict) else None
    return found


def _folder(change: Change) -> str:
    source = f"{change.base_tip[:12]}:pyproject.toml"
    with needed(source):
        return _folder_of(change, change.base, source)


def _folder_of(change: Change, tree: Tree, source: str) -> str:
    def pyproject() -> str | None:
        side = tree.get("pyproject.toml")
        return None if side is None else change.text(side)

    return find_folder(lambda path: path in tree, pyproject, source)


def _blob_or_none(change: Change, path: str) -> bytes | None:
    side = change.base.get(path)
    return None if side is None or not side.mode.startswith("100") else change.blob(side)


def _policy(change: Change, path: str, source: str) -> bytes:
    with needed(source):
        side = change.base.get(path)
        if side is not None:
            return change.blob(side)
    raise InputError.one(
        source,
        f"no policy at {change.base_tip[:12]}",
        "a policy on the target branch",
        "`fasttrack init` writes one; `--policy FILE` judges provisionally",
    )

# SPDX-License-Identifier: Apache-2.0
"""Policy and manifests as files on disk, for commands that answer authors and operators.

No verdict comes from here: `fasttrack check` reads git objects only.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fasttrack.case import Config, ManifestFile, ManifestSet, text_digest
from fasttrack.config import POLICY_NAME, file_or_none, find_folder, folder_name, read_file
from fasttrack.errors import InputError, Problem
from fasttrack.manifest.load import load_manifest
from fasttrack.manifest.model import Manifest
from fasttrack.manifest.variants import VariantTable, load_variant_table
from fasttrack.policy.load import load_policy, with_sigstore_root
from fasttrack.policy.trust import ROOT_FILE


@dataclass(frozen=True)
class Workspace:
    """One configuration folder on disk.

    Attributes:
        root: the repository's directory; paths in manifests are relative to it.
        config: the policy, and the folder's name inside the repository.
        manifests: the manifests, all of them valid.
    """

    root: Path
    config: Config
    manifests: ManifestSet

    def manifest(self, name: str | None) -> Manifest:
        """The manifest with this name, or the only one.

        Raises:
            InputError: no such manifest, or several and no name.
        """
        return self.manifests.named(name)

    def tables(self, manifest: Manifest) -> Mapping[str, VariantTable]:
        """The variant tables that a manifest names.

        Raises:
            InputError: one of them is missing or malformed.
        """
        paths = sorted({u.variants for u in manifest.units if u.variants is not None})
        return {path: load_variant_table(read_file(self.root / path), path) for path in paths}


def repository_top(where: Path) -> Path | None:
    """The directory at or above `where` that holds a working tree; None outside a repository."""
    here = where.resolve()
    return next((d for d in (here, *here.parents) if (d / ".git").exists()), None)


def open_workspace(root: Path, folder: str | None = None) -> Workspace:
    """Reads the configuration folder of a directory.

    Args:
        root: the repository's directory.
        folder: the configuration folder, or None to search as `fasttrack check` does.

    Raises:
        InputError: no policy, or problems in policy or manifests, all in one pass.
    """
    root = root if folder else (repository_top(root) or root)
    name = folder_name(folder, "--config-dir") if folder else _folder(root)
    policy_path = root / name / POLICY_NAME
    if not policy_path.is_file():
        raise InputError.one(
            f"{name}/{POLICY_NAME}", "no such file", "a policy", "fasttrack init --root PATH"
        )
    raw = read_file(policy_path)
    policy = load_policy(raw, f"{name}/{POLICY_NAME}")
    policy = with_sigstore_root(policy, lambda: file_or_none(root / name / ROOT_FILE))
    config = Config(name, policy, text_digest(raw))
    files = [
        ManifestFile(f"{name}/{p.name}", _manifest(p, f"{name}/{p.name}"))
        for p in sorted((root / name).glob("*.yaml"))
        if p.name != POLICY_NAME
    ]
    manifests = ManifestSet(tuple(files))
    problems: list[Problem] = [p for e in manifests.broken.values() for p in e.problems]
    if problems:
        raise InputError(problems)
    return Workspace(root, config, manifests)


def _manifest(path: Path, source: str) -> Manifest | InputError:
    try:
        return load_manifest(read_file(path), source)
    except InputError as error:
        return error


def _folder(root: Path) -> str:
    def pyproject() -> str | None:
        path = root / "pyproject.toml"
        try:
            return read_file(path).decode("utf-8") if path.is_file() else None
        except UnicodeDecodeError as error:
            raise InputError.one("pyproject.toml", str(error), "UTF-8 text") from error

    return find_folder(lambda path: (root / path).is_file(), pyproject, "pyproject.toml")

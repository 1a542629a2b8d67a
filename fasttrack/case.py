# SPDX-License-Identifier: Apache-2.0
"""Everything that a rule may look at: the change, the policy, the manifests, the date.

A rule sees no git, no clock, no environment and no working tree; what it can ask is here.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import TypeVar, cast

from fasttrack.change.change import Change
from fasttrack.change.tree import Entry
from fasttrack.errors import InputError
from fasttrack.manifest.model import Manifest
from fasttrack.policy.classes import PathClasses, fold
from fasttrack.policy.model import PathClass, Policy
from fasttrack.ran import NOTHING_RAN, Executed

T = TypeVar("T")


@dataclass(frozen=True)
class Config:
    """The policy in force and where it came from.

    Attributes:
        folder: configuration folder inside the repository, such as `manifests`.
        policy: the parsed policy.
        policy_digest: SHA-256 of the policy's raw bytes, hexadecimal.
        provisional: the policy was handed in by option and is not the target branch's own.
    """

    folder: str
    policy: Policy
    policy_digest: str
    provisional: bool = False

    @cached_property
    def classes(self) -> PathClasses:
        """Path classes under this policy."""
        return PathClasses(self.policy, self.folder)

    def holds_evidence(self, paths: Iterable[str]) -> bool:
        """Whether one of the paths is an evidence file."""
        inside = (path for path in paths if path.startswith(f"{self.folder}/"))
        return any(self.classes.is_evidence(path) for path in inside)


@dataclass(frozen=True)
class ManifestFile:
    """One manifest file on one side of the change.

    Attributes:
        path: its repository path.
        manifest: the parsed manifest, or the error that lists what is wrong with it.
    """

    path: str
    manifest: Manifest | InputError


@dataclass(frozen=True)
class ManifestSet:
    """The manifests of one tree, by path."""

    files: tuple[ManifestFile, ...]

    @cached_property
    def valid(self) -> Mapping[str, Manifest]:
        """Path to manifest, for those that parse."""
        return {f.path: f.manifest for f in self.files if isinstance(f.manifest, Manifest)}

    @cached_property
    def broken(self) -> Mapping[str, InputError]:
        """Path to error, for those that do not parse."""
        return {f.path: f.manifest for f in self.files if isinstance(f.manifest, InputError)}

    def named(self, name: str | None) -> Manifest:
        """The manifest with this name, or the only one.

        Raises:
            InputError: no such manifest, or several and no name.
        """
        known = {m.name: m for m in self.valid.values()}
        if name is None and len(known) == 1:
            return next(iter(known.values()))
        if name is None or name not in known:
            raise InputError.one(
                "--manifest",
                repr(name) if name else f"{len(known)} manifests and no name",
                f"one of {', '.join(sorted(known)) or 'no manifests'}",
            )
        return known[name]

    def governing(self, path: str) -> Manifest | None:
        """The manifest whose roots hold `path`, compared exactly."""
        return next((m for m in self.valid.values() if in_roots(m, path)), None)


def in_roots(manifest: Manifest, path: str) -> bool:
    """Whether `path` is one of the manifest's roots or lies under one."""
    return lies_in(manifest.code.roots, path)


def lies_in(places: Iterable[str], path: str) -> bool:
    """Whether `path` is one of these files, or in one of these directories, which end in `/`."""
    return any(path.startswith(p) if p.endswith("/") else path == p for p in places)


@dataclass(frozen=True)
class Case:
    """One change under one policy: the only argument of every rule.

    Attributes:
        change: facts from git.
        config: the policy in force.
        base: manifests at the target branch's tip.
        head: manifests in the judged tree (of the head alone when the merge conflicts).
        as_of: the UTC day that leases, waivers and keys are judged at.
        labelled: the change asked for the fast track by label.
        folder_moves_to: where policy and manifests would be looked for after the merge, in words,
            when that is elsewhere; empty when the change leaves it.
        evidence: directory of evidence beside that of the repository; for `fasttrack.evidence`
            alone, where it counts like any other.
        executed: what running the change's code has shown, as far as that was asked for.
    """

    change: Change
    config: Config
    base: ManifestSet
    head: ManifestSet
    as_of: date
    labelled: bool = False
    folder_moves_to: str = ""
    evidence: Path | None = None
    executed: Executed = NOTHING_RAN
    _found: dict[object, object] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def once(self, find: "Callable[[Case], T]") -> T:
        """What `find` makes of this case, made when it is first asked for.

        Rules and coverage share what is slow to find; a case with another policy starts afresh.
        """
        if find not in self._found:
            self._found[find] = find(self)
        return cast("T", self._found[find])

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self.config.policy

    def path_class(self, path: str) -> PathClass:
        """Class of a path under the policy."""
        return self.config.classes.of(path)

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """Changed paths that are not evidence."""
        return tuple(e for e in self.change.entries if not self.config.classes.is_evidence(e.path))

    @cached_property
    def evidence_entries(self) -> tuple[Entry, ...]:
        """Changed paths that are evidence."""
        return tuple(e for e in self.change.entries if self.config.classes.is_evidence(e.path))

    def governing(self, path: str) -> Manifest | None:
        """The manifest whose roots hold `path`, in the judged tree or at the target's tip."""
        return self.head.governing(path) or self.base.governing(path)

    def governed_entries(self) -> Iterator[Entry]:
        """Changed paths inside some manifest's roots."""
        return (e for e in self.entries if self.governing(e.path) is not None)

    @cached_property
    def in_lane(self) -> bool:
        """Whether the change is the fast track's business.

        It is when it carries the label, changes a manifest, the policy, a key or evidence, moves
        the place where they are looked for, or touches a governed root - compared by folded
        spelling, so that no case variant slips by.
        """
        roots = tuple(
            fold(root)
            for manifests in (self.base, self.head)
            for m in manifests.valid.values()
            for root in m.code.roots
        )
        if self.labelled or self.folder_moves_to:
            return True
        return any(self._is_lane_path(e.path, roots) for e in self.change.entries)

    def _is_lane_path(self, path: str, roots: tuple[str, ...]) -> bool:
        folded = fold(path)
        if folded.startswith(fold(self.config.folder) + "/"):
            return self.path_class(path) in {
                PathClass.POLICY,
                PathClass.MANIFESTS,
                PathClass.EVIDENCE,
            }
        return lies_in(roots, folded)


def text_digest(data: bytes) -> str:
    """SHA-256 of raw bytes, hexadecimal."""
    return hashlib.sha256(data).hexdigest()

# SPDX-License-Identifier: Apache-2.0
r"""Policy fixtures: small changes, written as YAML, with the verdict that they must get.

    why: what would go wrong if this came out otherwise
    base: {engine/shared.py: "x = 1\n"}      # files beside policy and manifests; may be absent
    change: {engine/shared.py: "x = 2\n"}    # path to new content; null deletes
    as_of: 2026-12-01                        # absent: the day of the command
    expect: {verdict: ordinary-review, rules: [FT101]}

Content is text, or one of `{symlink: TARGET}`, `{gitlink: OID}`, `{executable: TEXT}`,
`{hex: BYTES}`, `{repeat: TEXT, times: N}`, and `{edit: OLD, to: NEW}`, which replaces a text that
occurs exactly once in the file's base content.
"""

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from fasttrack import strict_yaml
from fasttrack.errors import InputError
from fasttrack.finding import Level
from fasttrack.testing import Content, File, Gitlink, Repo, Symlink
from fasttrack.verdict import Outcome, Request, Verdict, evaluate
from fasttrack.workspace import Workspace

MAX_CONTENT = 64 * 1024 * 1024
"""Bytes that one fixture's file may grow to by `repeat`."""


class Record(BaseModel):
    """A frozen, strict piece of a fixture."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class SymlinkSpec(Record):
    """A symbolic link."""

    symlink: str


class GitlinkSpec(Record):
    """A commit of another repository."""

    gitlink: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]


class ExecutableSpec(Record):
    """A text file with the executable bit."""

    executable: str


class HexSpec(Record):
    """Bytes in hexadecimal."""

    hex: Annotated[str, Field(pattern=r"^([0-9a-f]{2})*$")]


class RepeatSpec(Record):
    """A text, several times."""

    repeat: str
    times: Annotated[int, Field(ge=1, le=100_000_000)]


class EditSpec(Record):
    """A replacement in the base's content."""

    edit: Annotated[str, Field(min_length=1)]
    to: str


ContentSpec = str | SymlinkSpec | GitlinkSpec | ExecutableSpec | HexSpec | RepeatSpec | EditSpec


class Expectation(Record):
    """What the fixture must come out as."""

    verdict: Outcome
    """The verdict."""
    rules: tuple[Annotated[str, Field(pattern=r"^FT[1-9][0-9]{2}$")], ...] = ()
    """Ids of the rules that report something above a note; absent when none does."""
    in_lane: bool = True
    """Whether the change is the fast track's business."""


class PolicyFixture(Record):
    """One fixture file."""

    why: Annotated[str, Field(min_length=10)]
    """What would go wrong if it came out otherwise."""
    base: dict[str, ContentSpec] = Field(default_factory=dict)
    """Files of the target branch beside the configuration folder."""
    change: dict[str, ContentSpec | None] = Field(min_length=1)
    """Path to new content; null deletes."""
    labelled: bool = False
    """The change carries the label."""
    as_of: date | None = None
    """UTC day of the judgement, so that leases do not decide; that of the command when absent."""
    expect: Expectation
    """What it must come out as."""


@dataclass(frozen=True)
class FixtureResult:
    """One fixture that was run.

    Attributes:
        name: file name without suffix.
        fixture: what it says.
        outcome: the verdict it got.
        rules: rules that reported something above a note.
        wrong: what differs from the expectation; empty when it holds.
    """

    name: str
    fixture: PolicyFixture
    outcome: Outcome
    rules: tuple[str, ...]
    wrong: str


def load_fixtures(folder: Path) -> Mapping[str, PolicyFixture]:
    """Name to fixture, for every `*.yaml` in a folder, in the order of their names.

    Raises:
        InputError: no folder, no fixture, or problems in one.
    """
    files = sorted(folder.glob("*.yaml")) if folder.is_dir() else []
    if not files:
        raise InputError.one(
            str(folder), "no fixtures", "files such as `shared-code-is-outside.yaml`"
        )
    return {
        file.stem: strict_yaml.validate(
            strict_yaml.parse(file.read_bytes(), f"{folder.name}/{file.name}"), PolicyFixture
        )
        for file in files
    }


def run_fixtures(
    workspace: Workspace, fixtures: Mapping[str, PolicyFixture], as_of: date
) -> Iterator[FixtureResult]:
    """Runs fixtures against a workspace's policy and manifests.

    Args:
        workspace: whose configuration folder is the target branch's.
        fixtures: name to fixture.
        as_of: UTC day of the judgement, for fixtures that name none.
    """
    folder = workspace.root / workspace.config.folder
    config = {
        f"{workspace.config.folder}/{p.relative_to(folder).as_posix()}": p.read_bytes()
        for p in sorted(folder.rglob("*"))
        if p.is_file() and (p.parent == folder or p.parent.name == "keys")
    }
    for name, fixture in fixtures.items():
        with tempfile.TemporaryDirectory(prefix="fasttrack-policy-") as temporary:
            repo = Repo(Path(temporary), bare=True)
            if replaced := sorted(config.keys() & fixture.base.keys()):
                raise InputError.one(
                    name,
                    f"a base with `{replaced[0]}`, which is the policy's folder's own",
                    "the policy and the manifests as they are",
                    "move it to `change`, or leave it out",
                )
            base = {path: contents(spec, None, path) for path, spec in fixture.base.items()}
            before = config | base
            tip = repo.commit("main", before)
            changed = {
                path: None if spec is None else contents(spec, before.get(path), path)
                for path, spec in fixture.change.items()
            }
            repo.commit("topic", changed, parent=tip)
            request = Request(
                Path(temporary),
                target="main",
                head="topic",
                config_dir=workspace.config.folder,
                labelled=fixture.labelled,
            )
            yield _result(name, fixture, evaluate(request, fixture.as_of or as_of))


def contents(spec: ContentSpec, before: Content, where: str) -> Content:
    """What a fixture's content stands for.

    Args:
        spec: the content as written.
        before: the base's content of that path, None when there is none.
        where: the path, for messages.

    Raises:
        InputError: an edit whose text does not occur exactly once, or too much content.
    """
    content: Content
    match spec:
        case SymlinkSpec():
            content = Symlink(spec.symlink)
        case GitlinkSpec():
            content = Gitlink(spec.gitlink)
        case ExecutableSpec():
            content = File(spec.executable, "100755")
        case HexSpec():
            content = bytes.fromhex(spec.hex)
        case RepeatSpec():
            if len(spec.repeat.encode()) * spec.times > MAX_CONTENT:
                raise InputError.one(where, "too much content", f"at most {MAX_CONTENT} bytes")
            content = spec.repeat * spec.times
        case EditSpec():
            content = _edited(spec, before, where)
        case _:
            content = spec
    return content


def _edited(spec: EditSpec, before: Content, where: str) -> str:
    text = before.decode("utf-8") if isinstance(before, bytes) else before
    found = len(re.findall(re.escape(spec.edit), text)) if isinstance(text, str) else 0
    if not isinstance(text, str) or found != 1:
        raise InputError.one(
            where, f"{spec.edit!r} {found} times", "a text that occurs exactly once in the base"
        )
    return text.replace(spec.edit, spec.to)


def _result(name: str, fixture: PolicyFixture, verdict: Verdict) -> FixtureResult:
    rules = tuple(sorted({f.rule for f in verdict.findings if f.level is not Level.NOTE}))
    return FixtureResult(name, fixture, verdict.outcome, rules, _wrong(fixture, verdict, rules))


def _wrong(fixture: PolicyFixture, verdict: Verdict, rules: Sequence[str]) -> str:
    want = fixture.expect
    differences = [
        (name, got, wanted)
        for name, got, wanted in (
            ("verdict", verdict.outcome.value, want.verdict.value),
            ("rules", " ".join(rules) or "none", " ".join(sorted(want.rules)) or "none"),
            ("in_lane", str(verdict.in_lane).lower(), str(want.in_lane).lower()),
        )
        if got != wanted
    ]
    return "; ".join(f"{name} {got}, want {wanted}" for name, got, wanted in differences)

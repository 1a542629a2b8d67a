# SPDX-License-Identifier: Apache-2.0
"""Writes the first policy, manifest, code owners and workflow of a repository."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from importlib.resources import files
from pathlib import Path, PurePosixPath
from string import Template

from fasttrack import __version__
from fasttrack.adopt.layouts import Layout
from fasttrack.config import POLICY_NAME
from fasttrack.errors import InputError, Problem
from fasttrack.manifest.load import load_manifest
from fasttrack.policy.classes import CODEOWNERS
from fasttrack.policy.load import load_policy

LEASE_DAYS = 90
"""Length of a first lease: long enough to collect evidence, short enough to be looked at again."""
WORKFLOW = ".github/workflows/fasttrack.yml"


@dataclass(frozen=True)
class Answers:
    """What `init` was told.

    Attributes:
        layout: the kind of repository.
        roots: directories (ending in `/`) or single files of the decode path, `/`-separated.
        folder: configuration folder, such as `.github/fasttrack`.
        owner: who keeps the path working, and sponsors it until somebody else does.
        backup: who does when the owner can not.
        model: `organisation/model`.
        as_of: UTC day on which the lease starts.
    """

    layout: Layout
    roots: tuple[str, ...]
    folder: str
    owner: str
    backup: str
    model: str
    as_of: date


def propose(answers: Answers) -> Mapping[str, str]:
    """Repository path to content of the proposed files, each checked by the loader that reads it.

    Raises:
        InputError: when the answers do not make a valid policy or manifest.
    """
    name = _name(answers.roots[0])
    policy_path = f"{answers.folder}/policy.yaml"
    manifest_path = f"{answers.folder}/{name}.yaml"
    policy, manifest = _policy(answers), _manifest(answers, name)
    load_policy(policy, policy_path)
    load_manifest(manifest, manifest_path)
    return {
        policy_path: policy,
        manifest_path: manifest,
        WORKFLOW: _template("workflow").substitute(version=__version__),
    }


def codeowners_lines(answers: Answers) -> str:
    """Lines that give policy and roots an owner."""
    paths = [answers.folder + "/", *answers.roots]
    return "".join(f"/{path} @{answers.owner}\n" for path in paths)


def write(repo: Path, proposed: Mapping[str, str], owners: str) -> Sequence[str]:
    """Writes the proposed files and, where no code owners file exists, that too.

    Returns:
        The paths written, in order.

    Raises:
        InputError: when one of the files exists; nothing is written then.
    """
    existing = [path for path in proposed if (repo / path).exists()]
    if existing:
        raise InputError(
            [
                Problem(path, "a file that is already there", "a free path", "edit it by hand")
                for path in existing
            ]
        )
    texts = dict(proposed)
    if not any((repo / path).exists() for path in CODEOWNERS):
        texts[".github/CODEOWNERS"] = owners
    for path, text in texts.items():
        target = repo / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8", newline="\n")
    return sorted(texts)


def _policy(answers: Answers) -> str:
    classes = answers.layout.classes
    return _template("policy").substitute(
        paths="\n".join(f"  - {{class: {c}, match: [{_listed(p)}]}}" for c, p in classes),
        allow="".join(f"    - {_quoted(_everything(root))}\n" for root in answers.roots),
        imports=", ".join(answers.layout.imports),
    )


def _manifest(answers: Answers, name: str) -> str:
    roots = answers.roots
    first = roots[0]
    return _template("manifest").substitute(
        name=name,
        model=answers.model,
        zeros="0" * 64,
        roots="\n".join(f"    - {_quoted(root)}" for root in roots),
        gate=_quoted(first + "gate.py" if first.endswith("/") else first),
        switch=f"{name}_specialized",
        files=_listed(_everything(root) for root in roots),
        tests=_quoted(answers.layout.tests),
        owner=answers.owner,
        backup=answers.backup,
        sponsor=answers.owner,
        granted=answers.as_of.isoformat(),
        expires=(answers.as_of + timedelta(days=LEASE_DAYS)).isoformat(),
        removal=_listed(roots),
    )


def _name(root: str) -> str:
    """A manifest name from the last segment of a root, such as `foo` for `engine_x/models/foo/`.

    One that starts with a digit could be read as a number, and one file is the policy's.
    """
    stem = PurePosixPath(root).stem.lower()
    name = re.sub(r"[^a-z0-9]+", "-", stem).strip("-")
    return (
        name if name[:1].isalpha() and f"{name}.yaml" != POLICY_NAME else f"path-{name}".strip("-")
    )


def _everything(root: str) -> str:
    return root + "**" if root.endswith("/") else root


def _listed(items: Iterable[str]) -> str:
    return ", ".join(_quoted(item) for item in items)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _template(name: str) -> Template:
    return Template((files("fasttrack.adopt") / "templates" / f"{name}.yaml").read_text("utf-8"))

# SPDX-License-Identifier: Apache-2.0
"""The controls as data: contracts and expectations from the YAML files, cubins from the archive."""

import io
import json
import tarfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from fasttrack.audit.contract import Contract
from fasttrack.audit.finding import Verdict
from fasttrack.audit.program import Kernel
from fasttrack.audit.read.cubin import read_cubin

HERE = Path(__file__).parent
ARCHIVE = HERE / "cubins.tar.xz"
THEMES = ("order", "pointers", "flags")
ARCHES = ("sm_90a", "sm_100a", "sm_103a")


@dataclass(frozen=True)
class Control:
    """A kernel and what it must be judged as.

    Attributes:
        theme: name of its file.
        name: symbol of the kernel.
        contract: what holds for it.
        verdict: `PROVED` or `VIOLATED`: what its machine code deserves.
        unproven: architectures on which no audit can show it: honest, and left to a person.
        rules: of each architecture, the rules that must be broken.
    """

    theme: str
    name: str
    contract: Contract
    verdict: Verdict
    unproven: frozenset[str]
    rules: dict[str, frozenset[str]]


def _words(text: str) -> dict[str, Any]:
    """`mailbox after flag rounds 2`, `static descriptor`, `flag gpu own` or `static dynamic`."""
    holds, *rest = text.split()
    found: dict[str, Any] = {"holds": holds}
    words = iter(rest)
    for word in words:
        if word in ("after", "rounds"):
            value = next(words)
            found[word] = int(value) if word == "rounds" else value
        elif word in ("sentinel", "descriptor"):
            found[word] = True
        elif word in ("gpu", "sys"):
            found["scope"] = word
        elif word in ("own", "all", "same"):
            found["array"] = word
        elif word == "announces":
            names = next(words).split("+")
            found[word] = "nothing" if names == ["nothing"] else names
        else:
            found["pointees"] = word
    if holds == "flag":
        found.setdefault("scope", "sys")
    if "after" in found:
        found.setdefault("rounds", 1)
    return found


def _member(name: str, entry: list[Any]) -> dict[str, Any]:
    offset, text, *size = entry
    found = _words(text)
    plain = 4 if found["holds"] == "scalar" else 8
    return {"name": name, "offset": offset, "size": size[0] if size else plain, **found}


def _parameter(name: str, entry: str | dict[str, Any]) -> dict[str, Any]:
    if isinstance(entry, str):
        return {"name": name, **_words(entry)}
    fields = [_member(*member) for member in entry.items()]
    return {"name": name, "holds": "struct", "fields": fields}


def contract_of(name: str, entry: dict[str, Any]) -> Contract:
    """The contract of a kernel, from its entry."""
    parameters = [_parameter(*pair) for pair in entry["of"].items()]
    named = [one for top in parameters for one in top.get("fields", [top])]
    pointers = [one for one in named if one["holds"] != "scalar"]
    acquired = {one["after"] for one in pointers if "after" in one}
    writes = ("out", "flag")
    document = {
        "contract": 1,
        "kernel": name,
        "block": [entry.get("block", 128), 1, 1],
        "cluster": entry.get("cluster", 1),
        "pdl": entry.get("pdl", True),
        "parameters": parameters,
        "reads": [
            one["name"] for one in pointers if one["holds"] not in writes or one["name"] in acquired
        ],
        "writes": [one["name"] for one in pointers if one["holds"] in writes],
        "barriers": [{"id": i, "threads": n} for i, n in entry.get("barriers", {}).items()],
        "early_trigger": entry.get("early_trigger"),
    }
    return Contract.model_validate_json(json.dumps(document))


@cache
def controls() -> tuple[Control, ...]:
    """Every control, theme by theme."""
    found = []
    for theme in THEMES:
        for name, entry in yaml.safe_load((HERE / f"{theme}.yaml").read_text()).items():
            verdict, but = Verdict(entry["is"]), entry.get("but", {})
            rules = {arch: frozenset(but.get(arch, entry.get("rules", ()))) for arch in ARCHES}
            left = frozenset(entry.get("unproven", ()))
            found.append(Control(theme, name, contract_of(name, entry), verdict, left, rules))
    return tuple(found)


@cache
def stored() -> dict[str, bytes]:
    """The members of the archive by name."""
    with tarfile.open(fileobj=io.BytesIO(ARCHIVE.read_bytes()), mode="r:xz") as archive:
        files = ((one.name, archive.extractfile(one)) for one in archive.getmembers())
        return {name: file.read() for name, file in files if file is not None}


@cache
def kernels(theme: str, arch: str) -> dict[str, Kernel]:
    """The kernels of a theme on an architecture, by their names."""
    return {one.name: one for one in read_cubin(stored()[f"{theme}.{arch}.cubin"])}

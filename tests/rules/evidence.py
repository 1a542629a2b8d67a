# SPDX-License-Identifier: Apache-2.0
"""Evidence of rule cases as data: signs what `given.evidence` lists, with keys made from their ids.

Each item is a line of an evidence file: by default a statement that covers the first kernel-test
cell of the tree after the change, signed by `lab`, in a file that the change brings.

    evidence:
      - at: change               # or base, or tip
        file: a                  # lines of one label share a file; paths say `evidence:a`
        named: a name            # instead of the digest of its bytes; without .gz it is plain
        plain: true              # an uncompressed file
        kind: kernel-test
        cell: 0                  # which of the kind's cells
        signed_by: [lab]
        forged_by: nobody        # who really signs, under those ids
        set: {run.isolation: process}    # fields of the predicate, by their dotted path
      - line: "{"                # instead of a statement
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from securesystemslib.signer import CryptoSigner, SSlibKey

from fasttrack.change.change import Change
from fasttrack.change.read import read_change, read_revision
from fasttrack.config import read_base_manifests, read_config
from fasttrack.evidence.departure import Departure
from fasttrack.evidence.dsse import sign
from fasttrack.evidence.inputs import InputGraph
from fasttrack.evidence.owed import variant_tables
from fasttrack.evidence.packed import pack
from fasttrack.evidence.predicates import PREDICATES
from fasttrack.evidence.statement import Statement
from fasttrack.evidence.subject import hardware_of, unit_of
from fasttrack.manifest.points import witness_points
from fasttrack.policy.model import Policy
from fasttrack.vocabulary import Kind
from tests.evidence.keys import key
from tests.evidence.lanes import signed_inputs
from tests.evidence.strategies import good

STORE = "manifests/evidence/"
LABEL = "evidence:"
ITEM = {"at", "file", "named", "plain", "kind", "cell", "signed_by", "forged_by", "set", "line"}
HARDWARE = ("gb300", "h200")

Kept = Mapping[str, tuple[str, str, bytes]]
"""Label to where the file comes from, its path and its content."""


def trusted(keys: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Keys as a policy lists them: runners for everything, unless a case says otherwise."""
    found = (key(name, **{"hardware": HARDWARE, **changes}) for name, changes in keys.items())
    return [one.model_dump(mode="json", exclude_none=True) for one in found]


def evidence_files(items: Sequence[Mapping[str, Any]], where: Path, start: str) -> Kept:
    """The files of all items; statements speak of the bytes at `topic`, which left at `start`."""
    lines: dict[str, list[bytes]] = {}
    places: dict[str, tuple[str, str, bool]] = {}
    with (
        read_revision(where, "topic") as revision,
        read_change(where, target=start, head="topic") as change,
    ):
        for item in items:
            assert set(item) <= ITEM, f"{sorted(set(item) - ITEM)}"
            label = item.get("file", "a")
            lines.setdefault(label, []).append(_line(item, revision, change))
            place = item.get("at", "change"), item.get("named", ""), item.get("plain", False)
            assert places.setdefault(label, place) == place, f"file {label} at two places"
    found = {}
    for label, parts in lines.items():
        at, named, plain = places[label]
        suffix = ".dsse.jsonl" if plain else ".dsse.jsonl.gz"
        content = b"\n".join(parts) + b"\n"
        if (named or suffix).endswith(".gz"):
            content = pack(content)
        name = named or sha256(content).hexdigest() + suffix
        found[label] = at, STORE + name, content
    return found


def resolved(path: str, kept: Kept) -> str:
    """A path of a case, in which `evidence:a` stands for the file with that label."""
    return kept[path.removeprefix(LABEL)][1] if path.startswith(LABEL) else path


def _line(item: Mapping[str, Any], revision: Change, change: Change) -> bytes:
    if "line" in item:
        return str(item["line"]).encode()
    told = _statement(item, revision, change)
    ids: Iterable[str] = item.get("signed_by", ["lab"])
    return sign(told, *(_signer(item.get("forged_by", name), name) for name in ids))


def _statement(item: Mapping[str, Any], revision: Change, change: Change) -> Statement:
    kind = Kind(item.get("kind", "kernel-test"))
    config = read_config(revision, folder="manifests", policy_file=None)
    (manifest,) = read_base_manifests(revision, config).valid.values()
    tables = variant_tables(revision, manifest, revision.base)
    cell = witness_points(manifest, kind, config.policy.hardware, tables)[item.get("cell", 0)]
    inputs = InputGraph(revision, revision.base, manifest, config).unit_inputs(unit_of(cell))
    hardware = hardware_of(cell) or HARDWARE[0]
    model_of = {"model": manifest.model} if kind is Kind.MODEL_EVAL else {}
    told = good(
        kind,
        {**CONTENT.get(kind, {}), **model_of},
        values=dict(cell.values),
        unit=inputs.unit,
        digest=inputs.digest,
        tests=inputs.tests_digest,
        hardware=hardware,
    )
    data = told.predicate.model_dump(mode="json")
    data["toolchain"]["packages"] = {"torch": "2.13.0"}
    data["machine"] |= _machine(config.policy, hardware)
    data["machine"]["count"] = int(cell.values.get("tensor_parallel", 1))
    if "results" in data:
        data["results"]["passed"] += [f"{file}::test_it" for file in inputs.runs]
    departure = Departure(change, manifest.code.roots, config.folder)
    signed = signed_inputs(inputs, departure).model_dump(mode="json")
    data["inputs"] |= {name: signed[name] for name in ("boundary", "target", "apart")}
    for path, value in item.get("set", {}).items():
        *folders, name = path.split(".")
        place: Any = data
        for folder in folders:
            place = place[int(folder) if isinstance(place, list) else folder]
        place[int(name) if isinstance(place, list) else name] = value
    model = PREDICATES[told.predicate_type]
    return Statement(told.predicate_type, model.model_validate_json(json.dumps(data)))


def _machine(policy: Policy, hardware: str) -> dict[str, Any]:
    known = policy.hardware[hardware]
    return {"device": known.gpu, "arch": known.arch}


@cache
def _signer(seed: str, name: str) -> CryptoSigner:
    """The private key of one id, signing under another."""
    private = Ed25519PrivateKey.from_private_bytes(seed.encode().ljust(32, b"."))
    return CryptoSigner(private, SSlibKey.from_crypto(private.public_key(), name))


CONTENT: Mapping[Kind, Mapping[str, Any]] = {
    Kind.STRESS: {"seeds": (1, 2, 3)},
    Kind.PERFORMANCE: {"pairs": 10},
}
"""What a statement needs beside `GOOD` to be above the floors."""

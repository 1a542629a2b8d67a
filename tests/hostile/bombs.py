# SPDX-License-Identifier: Apache-2.0
"""Compressed evidence that is small on disk and enormous unpacked."""

from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path

from fasttrack.evidence.packed import pack
from fasttrack.testing import Content
from tests.engine import KERNEL, MANIFEST
from tests.hostile.case import ORDINARY, Arguments, Hostile, manifest, topic

STORE = "manifests/evidence/"
BYTES = 300_000_000
FILES = 60


def _brought(where: Path) -> None:
    topic(where, {STORE + name: content for name, content in _bombs(_zeros())})


def _lines(where: Path) -> None:
    topic(where, {STORE + name: content for name, content in _bombs(pack(b"{}\n" * 2_600_000))})


def _handed_in(where: Path) -> Arguments:
    more = where.parent / "more"
    more.mkdir()
    for name, content in _bombs(_zeros()):
        (more / name).write_bytes(content)
    owing = {MANIFEST: manifest("tier: declared", "tier: kernel-tested")}
    topic(where, {KERNEL: "BLOCK = 64\n"}, before=owing)
    return "--head", "topic", "--evidence", "more"


def _bombs(packed: bytes) -> Iterator[tuple[str, Content]]:
    """Many files of one content, told apart by the byte that names the compressor's system."""
    for system in range(FILES):
        content = packed[:9] + bytes([system]) + packed[10:]
        yield f"{sha256(content).hexdigest()}.dsse.jsonl.gz", content


@cache
def _zeros() -> bytes:
    return pack(bytes(BYTES))


CASES = (
    Hostile("bombs among the evidence", _brought, ORDINARY, "more unpacked bytes"),
    Hostile("bombs of short lines", _lines, ORDINARY, "2,600,000 lines"),
    Hostile("bombs in a folder that was handed in", _handed_in, ORDINARY, "a store of over"),
)

# SPDX-License-Identifier: Apache-2.0
"""Objects that are a few megabytes on disk and a gigabyte in memory, made without the gigabyte."""

import hashlib
import struct
import zlib
from functools import cache

from fasttrack.testing import Repo

GIGABYTE = 1 << 30
_PIECE = bytes(1 << 20)
_REF_DELTA = 7


def loose_zeros(repo: Repo) -> str:
    """Write a gigabyte of NUL bytes as git stores a loose object; returns its id."""
    oid, packed = _zeros()
    folder = repo.git_dir / "objects" / oid[:2]
    folder.mkdir(exist_ok=True)
    (folder / oid[2:]).write_bytes(packed)
    return oid


@cache
def _zeros() -> tuple[str, bytes]:
    header = b"blob %d\0" % GIGABYTE
    digest = hashlib.sha1(header, usedforsecurity=False)
    squeeze = zlib.compressobj(1)
    packed = [squeeze.compress(header)]
    for _ in range(GIGABYTE // len(_PIECE)):
        digest.update(_PIECE)
        packed.append(squeeze.compress(_PIECE))
    packed.append(squeeze.flush())
    return digest.hexdigest(), b"".join(packed)


def packed_against(repo: Repo, base: str, content: bytes) -> str:
    """Write a small blob as a delta against a gigabyte, in a pack; returns its id.

    Whoever wants the small one has to build the enormous one first.
    """
    if len(content) > 127:
        raise ValueError("one insertion of a delta holds at most 127 bytes")
    header = b"blob %d\0" % len(content)
    oid = hashlib.sha1(header + content, usedforsecurity=False).digest()
    delta = _varint(GIGABYTE) + _varint(len(content)) + bytes([len(content)]) + content
    record = _record_header(_REF_DELTA, len(delta)) + bytes.fromhex(base) + zlib.compress(delta)
    pack = b"PACK" + struct.pack(">II", 2, 1) + record
    pack += hashlib.sha1(pack, usedforsecurity=False).digest()
    fanout = [1 if first >= oid[0] else 0 for first in range(256)]
    index = b"\xfftOc" + struct.pack(">I", 2) + struct.pack(">256I", *fanout) + oid
    index += struct.pack(">II", zlib.crc32(record), 12) + pack[-20:]
    index += hashlib.sha1(index, usedforsecurity=False).digest()
    folder = repo.git_dir / "objects" / "pack"
    folder.mkdir(exist_ok=True)
    name = pack[-20:].hex()
    (folder / f"pack-{name}.pack").write_bytes(pack)
    (folder / f"pack-{name}.idx").write_bytes(index)
    return oid.hex()


def nested_trees(repo: Repo, levels: int = 10, width: int = 10) -> str:
    """Trees that name the same subtree again and again: `width ** levels` files, few objects."""
    entry = ("100644", repo.write("blob", b"x\n"))
    for _ in range(levels):
        names = [f"{n:02d}".encode("ascii") for n in range(width)]
        entry = ("40000", repo.tree([(entry[0], name, entry[1]) for name in names]))
    return entry[1]


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def _record_header(kind: int, size: int) -> bytes:
    first, rest = kind << 4 | size & 15, size >> 4
    return bytes([first | 128]) + _varint(rest) if rest else bytes([first])

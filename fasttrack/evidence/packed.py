# SPDX-License-Identifier: Apache-2.0
"""Evidence files in gzip: the lines and nothing else.

Statements repeat themselves, and packed they take about a ninth. A file is one member whose header
has no name, date or comment, so that the same lines give the same file, and whoever unpacks it has
seen what it says. Which compressor made it does not matter: a file is named by its bytes as they
were written, and nobody packs it again to compare.
"""

import zlib

LEVEL = 9
MAX_TEXT_BYTES = 8_000_000
"""Of the lines of one file; whatever a packed file promises, no more of it is unpacked."""
_GZIP = 31
"""What zlib calls one gzip member, its checksum and its length included."""
_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00"
"""Deflate, no name or comment, no date; the two bytes that follow tell of the compressor."""
_PIECE = 256 * 1024


def pack(text: bytes) -> bytes:
    """One gzip member."""
    return zlib.compress(text, LEVEL, _GZIP)


def unpack(packed: bytes) -> tuple[bytes, str]:
    """What a file unpacks to, and why it is not to be read; that is empty when it is.

    Of a file with a fault it is as much as was unpacked before the fault was seen.
    """
    if not packed.startswith(_HEADER):
        return b"", "no gzip data, or with a name, comment or date"
    inflater = zlib.decompressobj(_GZIP)
    pieces, size, rest, fault = [], 0, packed, ""
    while not (inflater.eof or fault):
        try:
            piece = inflater.decompress(rest, _PIECE)
        except zlib.error:
            fault = "damaged gzip data"
            break
        rest = inflater.unconsumed_tail
        pieces.append(piece)
        size += len(piece)
        if size > MAX_TEXT_BYTES:
            fault = "more unpacked bytes"
        elif not (piece or inflater.eof):
            fault = "gzip data that is cut short"
    if not fault and inflater.unused_data:
        fault = f"{len(inflater.unused_data):,} bytes behind the gzip data"
    return b"".join(pieces), fault

# SPDX-License-Identifier: Apache-2.0
"""Compressed evidence: the lines come back whole, or the file is a problem and costs little."""

import gzip
import io
import tracemalloc
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasttrack.evidence.packed import MAX_TEXT_BYTES, pack, unpack

TEXT = b'{"payload":"eyJfdHlwZSI6"}\n' * 40
PACKED = pack(TEXT)


@given(st.binary(max_size=2000), st.integers(1, 400))
def test_what_is_packed_is_unpacked_again(part: bytes, times: int) -> None:
    text = part * times
    assert unpack(pack(text)) == (text, "")


def test_the_same_lines_give_the_same_file_on_any_day() -> None:
    assert pack(TEXT) == PACKED
    assert PACKED[3:8] == bytes(5), "flags and date"
    assert len(PACKED) < len(TEXT) / 9


def test_another_compressor_s_file_is_read_as_well() -> None:
    packer = zlib.compressobj(1, zlib.DEFLATED, 31, 1, zlib.Z_HUFFMAN_ONLY)
    other = packer.compress(TEXT[:50]) + packer.flush(zlib.Z_FULL_FLUSH)
    other += packer.compress(TEXT[50:]) + packer.flush()
    assert other != PACKED
    assert unpack(other) == (TEXT, "")


def dated() -> bytes:
    return gzip.compress(TEXT, mtime=1)


def with_a_name() -> bytes:
    file = io.BytesIO()
    with gzip.GzipFile("statements", "wb", fileobj=file, mtime=0) as packer:
        packer.write(TEXT)
    return file.getvalue()


def with_an_extra_field() -> bytes:
    return PACKED[:3] + b"\x04" + PACKED[4:10] + b"\x03\x00abc" + PACKED[10:]


FAULTS: dict[str, tuple[Callable[[], bytes], str]] = {
    "nothing": (lambda: b"", "no gzip data"),
    "the plain lines": (lambda: TEXT, "no gzip data"),
    "zlib's own format": (lambda: zlib.compress(TEXT), "no gzip data"),
    "a date": (dated, "no gzip data, or with a name, comment or date"),
    "a name": (with_a_name, "no gzip data, or with a name, comment or date"),
    "an extra field": (with_an_extra_field, "no gzip data, or with a name, comment or date"),
    "two members": (lambda: PACKED + PACKED, f"{len(PACKED)} bytes behind the gzip data"),
    "an empty member more": (lambda: PACKED + pack(b""), "20 bytes behind the gzip data"),
    "zeros behind": (lambda: PACKED + bytes(512), "512 bytes behind the gzip data"),
    "another checksum": (lambda: PACKED[:-8] + bytes(4) + PACKED[-4:], "damaged gzip data"),
    "another length": (lambda: PACKED[:-4] + bytes(4), "damaged gzip data"),
    "a block of no type": (lambda: PACKED[:10] + b"\xff" * 9, "damaged gzip data"),
    "a byte too many": (lambda: pack(bytes(MAX_TEXT_BYTES + 1)), "more unpacked bytes"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_anything_but_one_whole_member_is_a_fault(name: str) -> None:
    make, fault = FAULTS[name]
    assert unpack(make())[1].startswith(fault)


def test_as_many_bytes_as_a_file_may_have_are_unpacked() -> None:
    text, fault = unpack(pack(bytes(MAX_TEXT_BYTES)))
    assert (len(text), fault) == (MAX_TEXT_BYTES, "")


@given(st.integers(0, len(PACKED) - 1))
def test_a_file_that_is_cut_short_anywhere_is_a_fault(length: int) -> None:
    assert unpack(PACKED[:length])[1]


@given(st.integers(0, 8 * len(PACKED) - 1))
def test_a_flipped_bit_is_a_fault_or_says_the_same(bit: int) -> None:
    raw = bytearray(PACKED)
    raw[bit // 8] ^= 1 << bit % 8
    text, fault = unpack(bytes(raw))
    assert fault or text == TEXT


@given(st.binary(max_size=300), st.booleans())
def test_random_bytes_hold_no_line(raw: bytes, headed: bool) -> None:
    text, fault = unpack(PACKED[:10] + raw if headed else raw)
    assert fault or not text  # a member of nothing is ten bytes behind its header


BOMB = pack(bytes(200_000_000))


@pytest.mark.parametrize(
    "raw", [BOMB, BOMB[:-8] + bytes(8), BOMB[:-100], BOMB + BOMB], ids=["", "sum", "cut", "two"]
)
def test_a_bomb_costs_no_more_memory_than_the_largest_file(raw: bytes) -> None:
    tracemalloc.start()
    try:
        text, fault = unpack(raw)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert fault == "more unpacked bytes"
    assert MAX_TEXT_BYTES < len(text) < 1.1 * MAX_TEXT_BYTES
    assert peak < 3 * MAX_TEXT_BYTES

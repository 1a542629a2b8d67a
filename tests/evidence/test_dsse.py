# SPDX-License-Identifier: Apache-2.0
"""Envelopes: what is signed is what is verified, and every other byte is noticed."""

import json
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError

from fasttrack.errors import InputError
from fasttrack.evidence.dsse import (
    MAX_BYTES,
    MAX_SIGNATURES,
    PAYLOAD_TYPE,
    Signature,
    Signed,
    read_envelope,
    sign,
    verified_key_ids,
)
from fasttrack.evidence.predicates.common import TestResults as Results
from fasttrack.evidence.statement import MAX_BYTES as MAX_STATEMENT_BYTES
from fasttrack.evidence.statement import Statement, read_statement
from fasttrack.vocabulary import Kind
from tests.evidence.keys import key, signer
from tests.evidence.strategies import good, statements

KEYS = (key("lab"), key("cloud"))
STATEMENT = good(Kind.KERNEL_TEST)
LINE = sign(STATEMENT, signer("lab"))
GOOD = read_envelope(LINE, "x")


@given(statements())
def test_a_signed_statement_is_read_and_verified(statement: Statement) -> None:
    signed = read_envelope(sign(statement, signer("lab"), signer("cloud")), "x")
    assert verified_key_ids(signed, KEYS) == {"lab", "cloud"}
    assert read_statement(signed.payload, "x") == statement


def test_an_envelope_is_one_line_of_canonical_json() -> None:
    whole = json.loads(LINE)
    assert json.dumps(whole, sort_keys=True, separators=(",", ":")).encode() == LINE
    assert set(whole) == {"payload", "payloadType", "signatures"}
    assert whole["payloadType"] == PAYLOAD_TYPE


def test_the_signature_covers_type_and_payload_as_dsse_defines_it() -> None:
    kind, payload = PAYLOAD_TYPE.encode(), STATEMENT.to_bytes()
    signed = b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)
    assert signer("lab").sign(signed).signature == GOOD.signatures[0].raw.hex()


def test_the_same_statement_and_key_give_the_same_line() -> None:
    assert sign(STATEMENT, signer("lab")) == LINE


@given(st.integers(0, 63), st.integers(0, 255), st.sampled_from(["signature", "payload"]))
@example(0, 0, "signature")
def test_the_library_that_signs_says_the_same_of_a_signature(at: int, flip: int, of: str) -> None:
    """Two implementations: ours calls the primitive, the library has its own encoding and keys."""
    raw, payload = bytearray(GOOD.signatures[0].raw), bytearray(GOOD.payload)
    changed = raw if of == "signature" else payload
    changed[at] ^= flip
    ours = verified_key_ids(
        replace(GOOD, payload=bytes(payload), signatures=(Signature("lab", bytes(raw)),)), KEYS
    )
    written = {"keyid": "lab", "sig": b64encode(raw).decode()}
    envelope = Envelope.from_dict(
        {
            "payload": b64encode(payload).decode(),
            "payloadType": PAYLOAD_TYPE,
            "signatures": [written],
        }
    )
    try:
        theirs = frozenset(envelope.verify([signer("lab").public_key], 1))
    except VerificationError:
        theirs = frozenset()
    assert ours == theirs == (frozenset() if flip else {"lab"})


def test_only_the_policy_s_keys_are_tried() -> None:
    assert verified_key_ids(GOOD, ()) == frozenset()
    assert verified_key_ids(GOOD, (key("cloud"),)) == frozenset()


def test_a_key_id_is_only_a_hint() -> None:
    other = key("lab", public=key("cloud").public)
    assert verified_key_ids(GOOD, (other,)) == frozenset()
    renamed = key("cloud", public=key("lab").public)
    assert verified_key_ids(GOOD, (renamed,)) == frozenset()


@pytest.mark.parametrize("public", ["00" * 32, "ff" * 32, "01" + "00" * 31])
def test_a_policy_key_that_nobody_holds_verifies_nothing(public: str) -> None:
    assert verified_key_ids(GOOD, (key("lab", public=public),)) == frozenset()


def test_one_bad_signature_does_not_spoil_another() -> None:
    lab, cloud = read_envelope(sign(STATEMENT, signer("lab"), signer("cloud")), "x").signatures
    broken = type(cloud)(cloud.key_id, lab.raw)
    assert verified_key_ids(Signed(GOOD.payload, (lab, broken)), KEYS) == {"lab"}


@given(st.integers(0, len(LINE) - 1), st.integers(1, 255))
def test_a_flipped_byte_makes_a_line_invalid_or_changes_nothing_that_matters(
    place: int, mask: int
) -> None:
    flipped = bytearray(LINE)
    flipped[place] ^= mask
    check_flipped(bytes(flipped))


def test_every_single_bit_of_a_line_matters() -> None:
    for place in range(len(LINE)):
        flipped = bytearray(LINE)
        flipped[place] ^= 1 << place % 8
        check_flipped(bytes(flipped))


def check_flipped(line: bytes) -> None:
    try:
        signed = read_envelope(line, "x")
    except InputError:
        return
    if verified_key_ids(signed, KEYS):
        assert signed == GOOD


@given(st.binary(max_size=300) | st.text().map(str.encode))
@example(b"")
@example(b"null")
@example(b"\xff\xfe{}")
def test_random_bytes_are_bad_input(raw: bytes) -> None:
    with pytest.raises(InputError):
        read_envelope(raw, "x")


def edited(edit: Callable[[dict[str, Any]], object]) -> bytes:
    whole = json.loads(LINE)
    edit(whole)
    return json.dumps(whole).encode()


def signature(name: str = "lab", **changes: Any) -> dict[str, Any]:
    """A well-formed signature of zeros."""
    return {"keyid": name, "sig": b64encode(bytes(64)).decode()} | changes


def respelled(text: str) -> str:
    """Other base64 of the same bytes: the last letter before `=` has bits that nobody reads."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    body = text.rstrip("=")
    assert body != text
    last = alphabet[alphabet.index(body[-1]) + 1]
    return body[:-1] + last + text[len(body) :]


NO_ENVELOPES = {
    "no payload": edited(lambda w: w.pop("payload")),
    "another payload type": edited(lambda w: w.update(payloadType="text/plain")),
    "no signature": edited(lambda w: w.update(signatures=[])),
    "signatures as an object": edited(lambda w: w.update(signatures={})),
    "nine signatures": edited(
        lambda w: w.update(signatures=[signature(f"k{n}") for n in range(MAX_SIGNATURES + 1)])
    ),
    "two signatures of one key": edited(lambda w: w["signatures"].append(signature())),
    "no key id": edited(lambda w: w["signatures"][0].pop("keyid")),
    "an empty key id": edited(lambda w: w["signatures"][0].update(keyid="")),
    "a key id without an end": edited(lambda w: w["signatures"][0].update(keyid="k" * 129)),
    "a number as key id": edited(lambda w: w["signatures"][0].update(keyid=1)),
    "a short signature": edited(lambda w: w["signatures"][0].update(sig="AAAA")),
    "a signature in hexadecimal": edited(lambda w: w["signatures"][0].update(sig="00" * 64)),
    "a signature spelled otherwise": edited(
        lambda w: w["signatures"][0].update(sig=respelled(w["signatures"][0]["sig"]))
    ),
    "a signature with a line's end": edited(
        lambda w: w["signatures"][0].update(sig=w["signatures"][0]["sig"] + "\n")
    ),
    "an unknown key": edited(lambda w: w.update(note="x")),
    "an unknown key of a signature": edited(lambda w: w["signatures"][0].update(cert="x")),
    "a payload with a line's end": edited(lambda w: w.update(payload=w["payload"] + "\n")),
    "a payload with blanks inside": edited(lambda w: w.update(payload=" " + w["payload"])),
    "a payload without its padding": edited(lambda w: w.update(payload="QQ")),
    "a payload with a letter outside ASCII": edited(lambda w: w.update(payload="\xe9AAA")),
    "a payload in the alphabet of addresses": edited(lambda w: w.update(payload="-_-_")),
    "a payload spelled otherwise": edited(lambda w: w.update(payload=respelled("QUE="))),
    "a key twice": LINE.replace(b'"payloadType"', b'"payload":"","payloadType"', 1),
    "a key twice in a signature": LINE.replace(b'"keyid"', b'"keyid":"x","keyid"', 1),
    "too many bytes": LINE.ljust(MAX_BYTES + 1),
    "deep nesting": b'{"payload":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "two lines": LINE + b"\n" + LINE,
}


@pytest.mark.parametrize("name", NO_ENVELOPES)
def test_what_is_no_envelope_is_bad_input(name: str) -> None:
    with pytest.raises(InputError) as caught:
        read_envelope(NO_ENVELOPES[name], "e.jsonl:2")
    assert all(problem.where.startswith("e.jsonl:2") for problem in caught.value.problems)


def test_eight_signatures_are_read() -> None:
    ids = [f"k{n}" for n in range(MAX_SIGNATURES)]
    signed = read_envelope(sign(STATEMENT, *(signer(one) for one in ids)), "x")
    assert verified_key_ids(signed, [key(one) for one in ids]) == set(ids)


def test_the_largest_statement_fits_an_envelope() -> None:
    payload = b64encode(STATEMENT.to_bytes().ljust(MAX_STATEMENT_BYTES)).decode()
    ids = [f"{n}".rjust(128, "k") for n in range(MAX_SIGNATURES)]
    line = edited(lambda w: w.update(payload=payload, signatures=[signature(one) for one in ids]))
    assert len(read_envelope(line, "x").payload) == MAX_STATEMENT_BYTES


def test_a_statement_too_large_to_be_read_is_not_signed() -> None:
    results = Results(passed=tuple(f"t{n}::{'x' * 900}" for n in range(300)))
    with pytest.raises(InputError, match="at most 262,144"):
        sign(good(Kind.KERNEL_TEST, {"results": results}), signer("lab"))


def test_reading_an_envelope_loads_no_cryptography() -> None:
    code = (
        "import sys, fasttrack.evidence.accept\n"
        "from fasttrack.evidence.dsse import read_envelope\n"
        "read_envelope(sys.stdin.buffer.read(), 'x')\n"
        "sys.exit(any(m.split('.')[0] in {'cryptography', 'securesystemslib'} "
        "for m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], input=LINE, check=False)
    assert done.returncode == 0

# SPDX-License-Identifier: Apache-2.0
"""Hostile sigstore bundles: none verifies, and none ends more than its own judgement."""

import json
from base64 import b64encode
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasttrack.errors import InputError
from fasttrack.evidence.accept import signatures
from fasttrack.evidence.dsse import sign
from fasttrack.evidence.sigstore_bundle import MAX_BYTES, read_bundle
from fasttrack.evidence.statement import read_statement
from fasttrack.evidence.trust import Signatures
from fasttrack.policy.trust import Trust
from fasttrack.vocabulary import Kind
from tests.evidence.bundles import (
    GOOD,
    INSTANCE,
    LINE,
    STATEMENT,
    Edit,
    Whole,
    der,
    edited,
    entry,
    trusting,
)
from tests.evidence.keys import signer
from tests.evidence.sigstore_instance import SIGNED
from tests.evidence.strategies import good

OTHER = json.loads(INSTANCE.bundle(good(Kind.KERNEL_TEST, values={"rows": 9})))
AGAIN = json.loads(INSTANCE.bundle(STATEMENT))
MIXED: dict[str, Edit] = {
    "another envelope": lambda w: w.update(dsseEnvelope=OTHER["dsseEnvelope"]),
    "another payload": lambda w: w["dsseEnvelope"].update(payload=OTHER["dsseEnvelope"]["payload"]),
    "another signature of the same": lambda w: w["dsseEnvelope"].update(
        signatures=AGAIN["dsseEnvelope"]["signatures"]
    ),
    "another certificate": lambda w: w["verificationMaterial"].update(
        certificate=AGAIN["verificationMaterial"]["certificate"]
    ),
    "another entry": lambda w: w["verificationMaterial"].update(
        tlogEntries=AGAIN["verificationMaterial"]["tlogEntries"]
    ),
    "two entries": lambda w: w["verificationMaterial"]["tlogEntries"].append(entry(w)),
    "no entry": lambda w: w["verificationMaterial"].update(tlogEntries=[]),
    "no promise of the log": lambda w: entry(w).pop("inclusionPromise"),
    "no proof": lambda w: entry(w).pop("inclusionProof"),
    "a proof without a signed root": lambda w: entry(w)["inclusionProof"].pop("checkpoint"),
    "a signed root without signature": lambda w: entry(w)["inclusionProof"].update(
        checkpoint={"envelope": "log\n1\nAAAA\n\n"}
    ),
    "a signed root with a stub": lambda w: entry(w)["inclusionProof"].update(
        checkpoint={"envelope": "log\n1\nAAAA\n\n\u2014 log AA==\n"}
    ),
    "another time": lambda w: entry(w).update(integratedTime=str(int(SIGNED.timestamp()) + 1)),
    "a time past all calendars": lambda w: entry(w).update(integratedTime=str(2**63)),
    "no time": lambda w: entry(w).pop("integratedTime"),
    "another kind of entry": lambda w: entry(w).update(
        kindVersion={"kind": "intoto", "version": "0.0.1"}
    ),
    "an entry that is no entry": lambda w: entry(w).update(
        canonicalizedBody=b64encode(b"{}").decode()
    ),
    "no certificate": lambda w: w["verificationMaterial"].pop("certificate"),
    "a public key instead": lambda w: w["verificationMaterial"].update(publicKey={"hint": "x"}),
    "a certificate that is none": lambda w: w["verificationMaterial"].update(
        certificate={"rawBytes": "AAAA"}
    ),
    "a certificate of no known version": lambda w: w["verificationMaterial"].update(
        certificate={"rawBytes": b64encode(der(w).replace(b"\2\1\2", b"\2\1\x12", 1)).decode()}
    ),
    "an unknown field": lambda w: w["verificationMaterial"].update(note="x"),
}


ALTERED = {
    *("another envelope", "another payload", "another signature of the same"),
    *("another certificate", "another entry", "another time", "an entry that is no entry"),
    *("a signed root without signature", "a signed root with a stub"),
}
"""Of a certificate that is real: whoever made such a bundle changed something that was signed."""


@pytest.mark.parametrize("name", MIXED)
def test_parts_of_two_bundles_and_missing_parts_verify_nothing(name: str) -> None:
    line = edited(MIXED[name])
    signed = read_bundle(line, "x")
    found = signatures(signed, trusting())
    assert found.valid == frozenset()
    reason = "bad-signature" if name in ALTERED else "not-verifiable"
    assert [refusal.reason.value for refusal in found.refusals] == [reason]


NO_BUNDLES: dict[str, bytes] = {
    "another version": edited(lambda w: w.update(mediaType=w["mediaType"].replace("3", "2"))),
    "no version": edited(lambda w: w.pop("mediaType")),
    "no material": edited(lambda w: w.pop("verificationMaterial")),
    "a signature of bytes": edited(lambda w: w.update(messageSignature={"signature": "AAAA"})),
    "no envelope": edited(lambda w: w.pop("dsseEnvelope")),
    "another payload type": edited(lambda w: w["dsseEnvelope"].update(payloadType="text/plain")),
    "no signature": edited(lambda w: w["dsseEnvelope"].update(signatures=[])),
    "two signatures": edited(
        lambda w: w["dsseEnvelope"].update(signatures=w["dsseEnvelope"]["signatures"] * 2)
    ),
    "a payload spelled otherwise": edited(lambda w: w["dsseEnvelope"].update(payload="QUF=")),
    "a key twice": LINE.replace(b'"mediaType"', b'"mediaType":"","mediaType"', 1),
    "an unknown field": edited(lambda w: w.update(note="x")),
    "too many bytes": LINE.ljust(MAX_BYTES + 1),
    "an endless number": edited(lambda w: w["verificationMaterial"].update(n=1)).replace(
        b'"n": 1', b'"n": 1e999'
    ),
    "deep nesting": LINE[:-1] + b',"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "an envelope": sign(STATEMENT, signer("lab")),
}


@pytest.mark.parametrize("name", NO_BUNDLES)
def test_what_is_no_bundle_is_bad_input(name: str) -> None:
    with pytest.raises(InputError) as caught:
        read_bundle(NO_BUNDLES[name], "e.jsonl:2")
    assert all(problem.where.startswith("e.jsonl:2") for problem in caught.value.problems)


@given(st.binary(max_size=300) | st.text().map(str.encode))
def test_random_bytes_are_no_bundle(raw: bytes) -> None:
    with pytest.raises(InputError):
        read_bundle(raw, "x")


def test_the_layout_of_a_bundle_s_json_does_not_matter() -> None:
    assert read_bundle(json.dumps(json.loads(LINE), indent=2).encode(), "x") == GOOD


def test_the_largest_statement_fits_a_bundle() -> None:
    payload = STATEMENT.to_bytes().ljust(256 * 1024)
    assert read_bundle(INSTANCE.bundle(payload), "x").payload == payload


@cache
def trusted() -> Trust:
    return trusting()


def check_changed(line: bytes) -> Signatures | None:
    """A changed bundle is unreadable, not verified, or says the same by the same identity."""
    try:
        signed = read_bundle(line, "x")
        statement = read_statement(signed.payload, "x")
    except InputError:
        return None
    found = signatures(signed, trusted())
    assert bool(found.valid) != bool(found.refusals)
    if found.valid:
        assert statement == STATEMENT
        assert found == Signatures(("ci",), frozenset({"ci"}))
    return found


@given(st.integers(0, len(LINE) - 1), st.integers(1, 255))
def test_a_flipped_byte_makes_a_bundle_invalid_or_changes_nothing_that_matters(
    place: int, mask: int
) -> None:
    flipped = bytearray(LINE)
    flipped[place] ^= mask
    check_changed(bytes(flipped))


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield at
    if isinstance(value, dict | list):
        for name in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[name], (*at, name))


PLACES = [*places(json.loads(LINE))][1:]
HOSTILE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.text(max_size=40),
    st.binary(max_size=40).map(lambda raw: b64encode(raw).decode()),
    st.just([]),
    st.just({}),
)


@given(st.sampled_from(PLACES), HOSTILE)
def test_whatever_stands_in_the_place_of_a_part_ends_in_a_reason(
    place: tuple[Any, ...], value: Any
) -> None:
    whole = json.loads(LINE)
    inside = whole
    for name in place[:-1]:
        inside = inside[name]
    inside[place[-1]] = value
    check_changed(json.dumps(whole).encode())


@given(st.binary(max_size=200), st.sampled_from(["certificate", "canonicalizedBody"]))
def test_random_bytes_in_the_place_of_certificate_or_entry_end_in_a_reason(
    raw: bytes, part: str
) -> None:
    text = b64encode(raw).decode()

    def edit(whole: Whole) -> None:
        if part == "certificate":
            whole["verificationMaterial"]["certificate"] = {"rawBytes": text}
        else:
            entry(whole)[part] = text

    found = check_changed(edited(edit))
    assert found is not None
    assert found.refusals

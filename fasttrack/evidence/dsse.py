# SPDX-License-Identifier: Apache-2.0
"""DSSE envelopes: a statement's bytes with the signatures over them.

Reading is strict and bounded, and says nothing about trust: who may sign is the policy's to say
(`fasttrack.evidence.trust`). What signs and verifies is imported when something is signed or
verified, so that a change without evidence does not pay for it. Envelopes are made by a library,
which loads the clients of many a key service; they are verified here, with the primitive alone.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from fasttrack.errors import InputError
from fasttrack.evidence.predicates.common import Record
from fasttrack.evidence.statement import MAX_BYTES as MAX_STATEMENT_BYTES
from fasttrack.evidence.statement import Statement, read_json, validated
from fasttrack.policy.trust import Key

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from securesystemslib.signer import Signer

PAYLOAD_TYPE = "application/vnd.in-toto+json"
_PREFIX = b"DSSEv1 %d %b %%d " % (len(PAYLOAD_TYPE), PAYLOAD_TYPE.encode("ascii"))
"""What is signed before the payload; its length goes in."""
MAX_SIGNATURES = 8
MAX_BYTES = 4 * MAX_STATEMENT_BYTES // 3 + 4096
"""Of one envelope: the largest statement in base64, and its signatures."""


class WrittenSignature(Record):
    """One signature as it is written."""

    keyid: Annotated[str, Field(min_length=1, max_length=128)]
    """Id of the key in the policy; a hint that nothing but the signature itself confirms."""
    sig: Annotated[str, Field(pattern=r"^[A-Za-z0-9+/]{86}==$")]
    """64 bytes of ed25519 in base64."""


class WrittenEnvelope(Record):
    """An envelope as it is written."""

    payload: Annotated[str, Field(max_length=MAX_BYTES)]
    """The statement in base64."""
    payload_type: Literal["application/vnd.in-toto+json"] = Field(alias="payloadType")
    """What the payload is."""
    signatures: tuple[WrittenSignature, ...] = Field(min_length=1, max_length=MAX_SIGNATURES)
    """Of one key each."""


@dataclass(frozen=True)
class Signature:
    """One signature; whether it is valid is another question.

    Attributes:
        key_id: the key that it says it is from.
        raw: its 64 bytes.
    """

    key_id: str
    raw: bytes


@dataclass(frozen=True)
class Signed:
    """An envelope that was read.

    Attributes:
        payload: the bytes that were signed.
        signatures: at most `MAX_SIGNATURES`, of different key ids.
        bundle: the sigstore bundle that holds the envelope instead, and then no key has signed it;
            empty for an envelope that keys signed.
    """

    payload: bytes
    signatures: tuple[Signature, ...]
    bundle: bytes = b""


def sign(statement: Statement, *signers: "Signer") -> bytes:
    """The envelope of a statement as one line of canonical JSON, without the line's end.

    Args:
        statement: what is signed.
        signers: at least one; the id of each one's public key is the policy's `Key.id`.

    Raises:
        InputError: the statement is too large to be read again.
    """
    from securesystemslib.dsse import Envelope  # noqa: PLC0415

    payload = statement.to_bytes()
    if len(payload) > MAX_STATEMENT_BYTES:
        where = f"{statement.cell.kind} {statement.cell.key}"
        raise InputError.one(where, f"{len(payload):,} bytes", f"at most {MAX_STATEMENT_BYTES:,}")
    envelope = Envelope(payload, PAYLOAD_TYPE, {})
    for signer in signers:
        envelope.sign(signer)
    line = json.dumps(envelope.to_dict(), sort_keys=True, separators=(",", ":"))
    return line.encode("ascii")


def read_envelope(raw: bytes, source: str) -> Signed:
    """An envelope from one line; nothing is verified.

    Args:
        raw: the line.
        source: how messages name it.

    Raises:
        InputError: not an envelope of ours, with everything that is wrong with it.
    """
    read_json(raw, source, MAX_BYTES)
    written = validated(WrittenEnvelope, raw, source)
    signatures = tuple(
        Signature(one.keyid, decoded(one.sig, f"{source}: signatures.{place}.sig"))
        for place, one in enumerate(written.signatures)
    )
    if len({one.key_id for one in signatures}) != len(signatures):
        raise InputError.one(f"{source}: signatures", "two of one key", "one of each key")
    return Signed(decoded(written.payload, f"{source}: payload"), signatures)


def verified_key_ids(signed: Signed, keys: Iterable[Key]) -> frozenset[str]:
    """Ids of the keys that made a valid signature.

    A signature is tried with the key that it names and with no other; one that names none of
    `keys` is no signature.

    Args:
        signed: the envelope.
        keys: the policy's keys, whatever they may sign.
    """
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415

    known = {key.id: key for key in keys}
    signed_bytes = _PREFIX % len(signed.payload) + signed.payload
    valid: set[str] = set()
    for one in signed.signatures:
        key = known.get(one.key_id)
        if key is None:
            continue
        try:
            _public_key(key.public).verify(one.raw, signed_bytes)
        except InvalidSignature:
            continue
        valid.add(key.id)
    return frozenset(valid)


@lru_cache(maxsize=1024)
def _public_key(public: str) -> "Ed25519PublicKey":
    from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415

    return ed25519.Ed25519PublicKey.from_public_bytes(bytes.fromhex(public))


def decoded(text: str, where: str) -> bytes:
    """The bytes of standard base64 in its one spelling: bits that nobody reads are zero."""
    try:
        raw = b64decode(text, validate=True)
    except ValueError as error:  # also of letters outside ASCII
        raise InputError.one(where, str(error), "standard base64") from error
    if b64encode(raw).decode("ascii") != text:
        raise InputError.one(where, "another spelling of the same bytes", "standard base64")
    return raw

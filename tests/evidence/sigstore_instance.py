# SPDX-License-Identifier: Apache-2.0
"""A sigstore instance for tests: an authority, a certificate log and a signature log in memory.

It hands out what the public one hands out, without a network: certificates that name an identity
and are promised to a log, and entries of a log of one leaf whose root is signed. `root()` is what a
policy pins; another `Instance` is another root.
"""

import base64
import hashlib
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from fasttrack.evidence.dsse import PAYLOAD_TYPE
from fasttrack.evidence.sigstore_bundle import WrittenBundle
from fasttrack.evidence.statement import Statement
from tests.evidence.keys import ISSUER, SUBJECT

SIGNED = datetime(2026, 11, 20, 12, 40, tzinfo=UTC)
"""Ten minutes after `strategies.FINISHED`."""
MEDIA_TYPE = WrittenBundle.model_fields["media_type"].annotation.__args__[0]  # type: ignore[union-attr]
_ISSUER_V1 = x509.ObjectIdentifier("1.3.6.1.4.1.57264.1.1")
_ISSUER_V2 = x509.ObjectIdentifier("1.3.6.1.4.1.57264.1.8")
_PROMISES = x509.ObjectIdentifier("1.3.6.1.4.1.11129.2.4.2")
_ORIGIN = "log.example.com - 1"


def b64(raw: bytes) -> str:
    return base64.b64encode(raw).decode("ascii")


def canonical(whole: Mapping[str, Any]) -> bytes:
    return json.dumps(whole, sort_keys=True, separators=(",", ":")).encode("ascii")


def new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def signed_by(key: ec.EllipticCurvePrivateKey, data: bytes) -> bytes:
    return key.sign(data, ec.ECDSA(hashes.SHA256()))


def spki(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def key_id(key: ec.EllipticCurvePrivateKey) -> bytes:
    return hashlib.sha256(spki(key)).digest()


@dataclass(frozen=True)
class Asked:
    """What somebody who signs can choose, and what a hostile one may choose wrongly.

    Attributes:
        subject: whom the certificate names; an e-mail address when it has no `https:`.
        issuer: who vouched.
        newer: the issuer stands in the newer extension of certificates only.
        signed: when the log took the entry.
        lifetime: of the certificate, from five minutes before that.
        logged_payload: of which the log's entry speaks; the signed one when None.
    """

    subject: str = SUBJECT
    issuer: str = ISSUER
    newer: bool = False
    signed: datetime = SIGNED
    lifetime: timedelta = timedelta(minutes=10)
    logged_payload: bytes | None = None


@dataclass(frozen=True)
class Instance:
    """One instance: three keys, and the authority's certificate."""

    authority: ec.EllipticCurvePrivateKey = field(default_factory=new_key)
    promises: ec.EllipticCurvePrivateKey = field(default_factory=new_key)
    log: ec.EllipticCurvePrivateKey = field(default_factory=new_key)

    def root(self) -> bytes:
        """The trusted root file."""
        whole = {
            "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
            "tlogs": [_log(self.log)],
            "certificateAuthorities": [
                {
                    "subject": {"organization": "example", "commonName": "example"},
                    "uri": "https://authority.example.com",
                    "certChain": {"certificates": [{"rawBytes": b64(_der(self.own()))}]},
                    "validFor": {"start": "2026-01-01T00:00:00Z"},
                }
            ],
            "ctlogs": [_log(self.promises)],
            "timestampAuthorities": [],
        }
        return json.dumps(whole, indent=2).encode("ascii") + b"\n"

    def own(self) -> x509.Certificate:
        """The authority's certificate, the same every time but for its signature."""
        usage = x509.KeyUsage(
            **dict.fromkeys(_USAGES, False) | {"key_cert_sign": True, "crl_sign": True}
        )
        identifier = x509.SubjectKeyIdentifier.from_public_key(self.authority.public_key())
        return (
            _builder(_NAME, self.authority, SIGNED - timedelta(days=99), timedelta(days=999))
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(identifier, critical=False)
            .sign(self.authority, hashes.SHA256())
        )

    def bundle(self, statement: Statement | bytes, asked: Asked = Asked()) -> bytes:
        """A bundle of a statement, or of any payload, on one line."""
        payload = statement if isinstance(statement, bytes) else statement.to_bytes()
        key = new_key()
        certificate = self._certificate(key, asked)
        kind = PAYLOAD_TYPE.encode()
        signature = signed_by(key, b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload))
        envelope = {
            "payload": b64(payload),
            "payloadType": PAYLOAD_TYPE,
            "signatures": [{"sig": b64(signature)}],
        }
        logged = payload if asked.logged_payload is None else asked.logged_payload
        entry = self._entry(certificate, envelope, logged, signature, asked)
        material = {"certificate": {"rawBytes": b64(_der(certificate))}, "tlogEntries": [entry]}
        whole = {
            "mediaType": MEDIA_TYPE,
            "dsseEnvelope": envelope,
            "verificationMaterial": material,
        }
        return canonical(whole)

    def _certificate(self, key: ec.EllipticCurvePrivateKey, asked: Asked) -> x509.Certificate:
        usage = x509.KeyUsage(**dict.fromkeys(_USAGES, False) | {"digital_signature": True})
        is_address = asked.subject.startswith("https:")
        name = (x509.UniformResourceIdentifier if is_address else x509.RFC822Name)(asked.subject)
        text = asked.issuer.encode()
        issuer = x509.UnrecognizedExtension(_ISSUER_V1, text)
        if asked.newer:
            issuer = x509.UnrecognizedExtension(_ISSUER_V2, b"\x0c" + bytes([len(text)]) + text)
        start = asked.signed - timedelta(minutes=5)
        from_authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(
            self.authority.public_key()
        )
        code_signing = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CODE_SIGNING])
        builder = (
            _builder(x509.Name([]), key, start, asked.lifetime)
            .add_extension(usage, critical=True)
            .add_extension(code_signing, critical=False)
            .add_extension(from_authority, critical=False)
            .add_extension(x509.SubjectAlternativeName([name]), critical=True)
            .add_extension(issuer, critical=False)
        )
        promised = builder.sign(self.authority, hashes.SHA256()).tbs_certificate_bytes
        promise = x509.UnrecognizedExtension(_PROMISES, self._promise(promised, start))
        return builder.add_extension(promise, critical=False).sign(self.authority, hashes.SHA256())

    def _promise(self, promised: bytes, moment: datetime) -> bytes:
        """The certificate log's word that it will hold a certificate, as RFC 6962 lays it out."""
        at = int(moment.timestamp() * 1000)
        said = struct.pack("!BBQH", 0, 0, at, 1) + key_id(self.authority)
        said += len(promised).to_bytes(3, "big") + promised + b"\0\0"
        signature = signed_by(self.promises, said)
        one = struct.pack("!B32sQH", 0, key_id(self.promises), at, 0)
        one += b"\x04\x03" + struct.pack("!H", len(signature)) + signature
        listed = struct.pack("!HH", len(one) + 2, len(one)) + one
        return b"\x04" + bytes([len(listed)]) + listed  # a DER octet string of up to 127 bytes

    def _entry(
        self,
        certificate: x509.Certificate,
        envelope: Mapping[str, Any],
        payload: bytes,
        signature: bytes,
        asked: Asked,
    ) -> dict[str, Any]:
        """The only entry of the log, with its proof, the signed root and the log's promise."""
        pem = certificate.public_bytes(Encoding.PEM)
        spec = {
            "envelopeHash": _hash(canonical(envelope)),
            "payloadHash": _hash(payload),
            "signatures": [{"signature": b64(signature), "verifier": b64(pem)}],
        }
        body = canonical({"apiVersion": "0.0.1", "kind": "dsse", "spec": spec})
        leaf = hashlib.sha256(b"\0" + body).digest()
        note = f"{_ORIGIN}\n1\n{b64(leaf)}\n"
        mark = b64(key_id(self.log)[:4] + signed_by(self.log, note.encode()))
        at = int(asked.signed.timestamp())
        promise = canonical(
            {
                "body": b64(body),
                "integratedTime": at,
                "logID": key_id(self.log).hex(),
                "logIndex": 0,
            }
        )
        return {
            "logIndex": "0",
            "logId": {"keyId": b64(key_id(self.log))},
            "kindVersion": {"kind": "dsse", "version": "0.0.1"},
            "integratedTime": str(at),
            "inclusionPromise": {"signedEntryTimestamp": b64(signed_by(self.log, promise))},
            "inclusionProof": {
                "logIndex": "0",
                "rootHash": b64(leaf),
                "treeSize": "1",
                "hashes": [],
                "checkpoint": {"envelope": f"{note}\n\u2014 log.example.com {mark}\n"},
            },
            "canonicalizedBody": b64(body),
        }


_NAME = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "example")])
_USAGES = (
    *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment"),
    *("key_agreement", "key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
)


def _builder(
    name: x509.Name, key: ec.EllipticCurvePrivateKey, start: datetime, lifetime: timedelta
) -> x509.CertificateBuilder:
    serial = int.from_bytes(key_id(key)[:8], "big")
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(_NAME)
        .public_key(key.public_key())
        .serial_number(serial)
        .not_valid_before(start)
        .not_valid_after(start + lifetime)
    )


def _log(key: ec.EllipticCurvePrivateKey) -> dict[str, Any]:
    return {
        "baseUrl": "https://log.example.com",
        "hashAlgorithm": "SHA2_256",
        "publicKey": {
            "rawBytes": b64(spki(key)),
            "keyDetails": "PKIX_ECDSA_P256_SHA_256",
            "validFor": {"start": "2026-01-01T00:00:00Z"},
        },
        "logId": {"keyId": b64(key_id(key))},
    }


def _hash(raw: bytes) -> dict[str, str]:
    return {"algorithm": "sha256", "value": hashlib.sha256(raw).hexdigest()}


def _der(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(Encoding.DER)

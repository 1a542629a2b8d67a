# SPDX-License-Identifier: Apache-2.0
"""Sigstore bundles: a statement that an OIDC identity signed, verified offline.

A bundle holds the envelope, the certificate that an authority gave to whoever proved an identity,
and the place of both in a public log. Nothing is asked of the network: authorities and logs are
those of one file, which the policy pins by its digest. What is read here is the statement; the
rest of a bundle is read by the `sigstore` package, which comes with an extra. Without it, or
without that file, a bundle counts for nothing and says why.
"""

import json
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from fasttrack.evidence.dsse import MAX_BYTES as MAX_ENVELOPE_BYTES
from fasttrack.evidence.dsse import PAYLOAD_TYPE, Signed, decoded
from fasttrack.evidence.predicates.common import Record
from fasttrack.evidence.statement import read_json, validated
from fasttrack.evidence.trust import Reason, Refusal, Signatures
from fasttrack.policy.trust import ROOT_FILE, Identity, Trust

if TYPE_CHECKING:
    from datetime import datetime

    from cryptography.x509 import Certificate
    from sigstore.verify import Verifier

EXTRA = "fasttrack-decode[sigstore]"
MAX_BYTES = MAX_ENVELOPE_BYTES + 64 * 1024
"""Of one bundle: an envelope, a certificate, and a log's proof."""


class BundledSignature(Record):
    """The signature of a bundle's envelope; the package reads it."""

    sig: Annotated[str, Field(min_length=1, max_length=4096)]
    """In base64, by the certificate's key."""
    keyid: Annotated[str, Field(max_length=128)] = ""
    """Says nothing: the certificate tells whose the key is."""


class BundledEnvelope(Record):
    """The envelope inside a bundle."""

    payload: Annotated[str, Field(max_length=MAX_ENVELOPE_BYTES)]
    """The statement in base64."""
    payload_type: Literal["application/vnd.in-toto+json"] = Field(alias="payloadType")
    """What the payload is."""
    signatures: tuple[BundledSignature] = Field()
    """Exactly one."""


class WrittenBundle(Record):
    """A bundle as it is written."""

    media_type: Literal["application/vnd.dev.sigstore.bundle.v0.3+json"] = Field(alias="mediaType")
    """The one version that is read: one certificate, one log entry with a proof."""
    verification_material: dict[str, Any] = Field(alias="verificationMaterial")
    """Certificate and log entry."""
    envelope: BundledEnvelope = Field(alias="dsseEnvelope")
    """The statement, signed."""


def read_bundle(raw: bytes, source: str) -> Signed:
    """A bundle's statement; nothing is verified.

    Args:
        raw: the bundle, however its JSON is laid out.
        source: how messages name it.

    Raises:
        InputError: not a bundle of ours, with everything that is wrong with it.
    """
    whole = read_json(raw, source, MAX_BYTES)
    written = validated(WrittenBundle, raw, source)
    line = json.dumps(whole, sort_keys=True, separators=(",", ":")).encode("ascii")
    return Signed(decoded(written.envelope.payload, f"{source}: payload"), (), line)


def bundle_signatures(signed: Signed, trust: Trust) -> Signatures:
    """Which of the policy's identities signed a bundle, or why that can not be told.

    Args:
        signed: what `read_bundle` read.
        trust: the policy's.
    """
    if not trust.identities:
        return _nobody(Reason.UNKNOWN_IDENTITY, "the policy trusts no identity")
    if trust.root is None:
        text = f"the sigstore root that the policy names is not in {ROOT_FILE}"
        return _nobody(Reason.NOT_VERIFIABLE, text)
    try:
        import sigstore.verify  # noqa: F401, PLC0415
    except ImportError:
        text = f"sigstore bundles are verified with an extra: pip install '{EXTRA}'"
        return _nobody(Reason.NOT_VERIFIABLE, text)
    return _verified(signed, trust.root, trust.identities)


def _nobody(reason: Reason, text: str) -> Signatures:
    return Signatures((), frozenset(), (Refusal(reason, text),))


def _verified(signed: Signed, root: bytes, identities: tuple[Identity, ...]) -> Signatures:
    from sigstore.models import Bundle  # noqa: PLC0415

    # What the package and the parsers under it raise over hostile bytes has no common base, and
    # none of it may end the judgement of other statements. Whatever it is, nothing is verified.
    try:
        verifier = _verifier(root)
    except Exception as error:
        text = f"{ROOT_FILE} is no sigstore root: {_first_line(error)}"
        return _nobody(Reason.NOT_VERIFIABLE, text)
    holder = _Holder(identities)
    try:
        bundle = Bundle.from_json(signed.bundle)
        kind, payload = verifier.verify_dsse(bundle, holder)
    except Exception as error:
        # Once asked whose it is, the certificate is known to be real: what fails then is altered.
        reason = Reason.BAD_SIGNATURE if holder.subject else Reason.NOT_VERIFIABLE
        return _nobody(reason, f"sigstore does not verify this bundle: {_first_line(error)}")
    if (kind, payload) != (PAYLOAD_TYPE, signed.payload):
        return _nobody(Reason.BAD_SIGNATURE, "sigstore verifies another payload than this")
    if holder.identity is None:
        text = f"no identity of the policy has subject {holder.subject} and its issuer"
        return _nobody(Reason.UNKNOWN_IDENTITY, text)
    found = holder.identity.id
    return Signatures((found,), frozenset({found}), until=holder.until)


class _Holder:
    """Finds whose a certificate is; the package asks while it verifies.

    What is found is worth something only once the whole bundle has been verified.
    """

    def __init__(self, identities: tuple[Identity, ...]) -> None:
        self._identities = identities
        self.identity: Identity | None = None
        self.subject = ""
        self.until: datetime | None = None

    def verify(self, cert: "Certificate") -> None:
        """Keeps subject, identity and end; raises nothing of its own for a stranger."""
        self.until = cert.not_valid_after_utc
        self.subject = _subject(cert)
        fitting = (one for one in self._identities if one.is_of(self.subject))
        self.identity = next((one for one in fitting if _is_issuer(one.issuer, cert)), None)


def _subject(cert: "Certificate") -> str:
    """The one name that a certificate is for."""
    from cryptography import x509  # noqa: PLC0415

    names = cert.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    found = [
        *names.get_values_for_type(x509.UniformResourceIdentifier),
        *names.get_values_for_type(x509.RFC822Name),
    ]
    if len(found) != 1 or len(list(names)) != 1:
        raise ValueError("a certificate that is not for one address or e-mail address")
    return found[0]


def _is_issuer(issuer: str, cert: "Certificate") -> bool:
    """Whether a certificate says that this issuer vouched, in its older or newer extension."""
    from sigstore.errors import VerificationError  # noqa: PLC0415
    from sigstore.verify.policy import AnyOf, OIDCIssuer, OIDCIssuerV2  # noqa: PLC0415

    try:
        AnyOf([OIDCIssuer(issuer), OIDCIssuerV2(issuer)]).verify(cert)
    except VerificationError:
        return False
    return True


@lru_cache(maxsize=4)
def _verifier(root: bytes) -> "Verifier":
    from sigstore.models import TrustedRoot  # noqa: PLC0415
    from sigstore.verify import Verifier  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:  # the package reads roots from files alone
        path = Path(folder, "root.json")
        path.write_bytes(root)
        return Verifier(trusted_root=TrustedRoot.from_file(str(path)))


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:300]

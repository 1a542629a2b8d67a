# SPDX-License-Identifier: Apache-2.0
"""Keys for tests: runners of pools of their own, from fixed seeds, and policies that trust them."""

from datetime import date
from functools import cache
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from securesystemslib.signer import CryptoSigner, SSlibKey

from fasttrack.policy.trust import Identity, Key, Trust
from fasttrack.vocabulary import Kind

DAY = date(2026, 11, 29)
"""The judged day; `strategies.FINISHED` lies nine days before it."""
SUBJECT = "https://example.com/lab/engine/.ci/measure.yml@refs/heads/main"
ISSUER = "https://token.example.com"


@cache
def signer(key_id: str) -> CryptoSigner:
    """The private half of a key; another id is another key."""
    private = Ed25519PrivateKey.from_private_bytes(key_id.encode().ljust(32, b"."))
    return CryptoSigner(private, SSlibKey.from_crypto(private.public_key(), key_id))


def key(key_id: str, **changes: Any) -> Key:
    """What a policy says of it: a runner of a pool of its own, for everything."""
    fields: dict[str, Any] = {
        "id": key_id,
        "public": signer(key_id).public_key.keyval["public"],
        "roles": ("runner",),
        "kinds": tuple(Kind),
        "pool": f"{key_id}-pool",
        "hardware": ("h200", "cpu"),
        "valid_from": date(2026, 1, 1),
        "valid_until": date(2026, 12, 31),
    }
    return Key(**(fields | changes))


def identity(name: str = "ci", **changes: Any) -> Identity:
    """What a policy says of an OIDC identity: a runner of a pool of its own, for everything."""
    limits = key(name).model_dump(exclude={"public"})
    told = {"issuer": ISSUER, "subject": SUBJECT}
    return Identity(**(limits | told | changes))


def trust(*keys: Key, **changes: Any) -> Trust:
    """A policy's trust in these keys; in `lab` and `cloud` when none is given."""
    return Trust(keys=keys or (key("lab"), key("cloud")), **changes)

# SPDX-License-Identifier: Apache-2.0
"""Whose signatures the policy trusts: keys, and identities that sign through sigstore.

Both may sign the same things under the same limits. A key is its public half; an identity is what
an OIDC issuer says of whoever asked for a certificate, and it is worth as much as the certificate
authorities and logs that it is checked with, which the policy pins by their digest.
"""

import hashlib
import re
from collections.abc import Sequence
from datetime import date
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, PrivateAttr, StringConstraints, field_validator, model_validator

from fasttrack.policy.fields import Count, Days, Identifier, Record, Sha256
from fasttrack.vocabulary import Kind

ROOT_FILE = "keys/sigstore-root.json"
"""Where the sigstore root lies in the configuration folder, beside the keys: a policy change."""
MAX_STARS = 2
_STAR = "[A-Za-z0-9._-]{1,64}"


class Signatory(Record):
    """Who may sign what, for which machines, and between which days."""

    noun: ClassVar[str]

    id: Identifier
    """Name in statements and reports; of one key or identity."""
    roles: tuple[Literal["runner", "reviewer", "release"], ...] = Field(min_length=1)
    """What its holder does."""
    kinds: tuple[Kind, ...] = Field(min_length=1)
    """Evidence kinds that it may sign."""
    pool: Identifier
    """The group of machines that it speaks for; thresholds count distinct pools."""
    hardware: tuple[Identifier, ...] = Field(min_length=1)
    """Hardware ids that it may sign for."""
    valid_from: date
    """First day, UTC."""
    valid_until: date
    """Last day, UTC."""
    revoked: date | None = None
    """Day from which every statement that it signed is void."""

    def __str__(self) -> str:
        """What it is and its name, as messages say it."""
        return f"{self.noun} {self.id}"

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.valid_from > self.valid_until:
            raise ValueError(
                f"valid_from {self.valid_from} is after valid_until {self.valid_until}"
            )
        return self


class Key(Signatory):
    """One public key and what it may sign."""

    noun = "key"

    public: Sha256
    """Ed25519 public key, 32 bytes in lower-case hexadecimal."""


class Identity(Signatory):
    """One OIDC identity and what it may sign through sigstore."""

    noun = "identity"

    issuer: Annotated[str, StringConstraints(pattern=r"^https://[!-~]{1,256}$")]
    """Issuer URL of the certificate, exact."""
    subject: Annotated[str, StringConstraints(pattern=r"^[!-~]{1,1024}$")]
    """Whom the certificate names: a workflow's address or an e-mail address, exact. In what
    follows the `@` of a workflow's address, its ref, `*` stands for 1 to 64 letters, digits, dots,
    dashes and underscores; twice at most."""

    @field_validator("subject")
    @classmethod
    def _bounded(cls, value: str) -> str:
        fixed, _, ref = value.partition("@")
        if "*" in fixed or ("*" in ref and not fixed.startswith("https://")):
            raise ValueError("`*` may stand only behind the `@` of a workflow's https address")
        if ref.count("*") > MAX_STARS or "**" in ref:
            raise ValueError(f"`*` may stand {MAX_STARS} times at most, and never beside another")
        return value

    def is_of(self, subject: str) -> bool:
        """Whether a certificate of this subject is this identity's; the issuer is not asked."""
        pattern = _STAR.join(re.escape(part) for part in self.subject.split("*"))
        return re.fullmatch(pattern, subject) is not None


class Trust(Record):
    """Whose evidence counts, how much of it, and for how long."""

    keys: tuple[Key, ...] = ()
    """Trusted public keys."""
    identities: tuple[Identity, ...] = ()
    """Trusted OIDC identities; the first whose issuer and subject fit a certificate has signed."""
    sigstore_root: Sha256 | None = None
    """SHA-256 of `keys/sigstore-root.json`: the certificate authorities and logs that certificates
    of identities are checked with."""
    thresholds: dict[Kind, Count] = Field(default_factory=dict)
    """Distinct pools that must agree, each by a run of its own, per kind; 1 where absent."""
    max_age_days: dict[Kind, Days] = Field(default_factory=dict)
    """Days after which a statement is stale, per kind; 90 where absent."""
    boundary: Literal["stale", "grace"] = "grace"
    """A changed file just outside the roots: evidence is stale at once, or covered for 14 days."""

    _root: bytes | None = PrivateAttr(default=None)

    @field_validator("keys")
    @classmethod
    def _keys_differ(cls, value: tuple[Key, ...]) -> tuple[Key, ...]:
        _require_distinct("key id", [key.id for key in value])
        # One private half that signs under two ids would be two pools.
        _require_distinct("public half", [key.public for key in value])
        return value

    @field_validator("identities")
    @classmethod
    def _identities_differ(cls, value: tuple[Identity, ...]) -> tuple[Identity, ...]:
        _require_distinct("identity id", [one.id for one in value])
        _require_distinct("subject", [f"{one.subject} of {one.issuer}" for one in value])
        return value

    @model_validator(mode="after")
    def _identities_can_be_checked(self) -> Self:
        _require_distinct("id", [one.id for one in (*self.keys, *self.identities)])
        if self.identities and self.sigstore_root is None:
            raise ValueError(f"identities need sigstore_root, the SHA-256 of {ROOT_FILE}")
        return self

    @property
    def root(self) -> bytes | None:
        """The sigstore root with the digest that the policy names; None when it was not found."""
        return self._root

    def with_root(self, content: bytes | None) -> Self:
        """The same trust with the content of `ROOT_FILE`.

        Args:
            content: what lies there; anything but what the digest names is left out, and then no
                identity's signature can be checked.
        """
        known = content is not None and hashlib.sha256(content).hexdigest() == self.sigstore_root
        rooted = self.model_copy()
        rooted._root = content if known else None
        return rooted


def _require_distinct(what: str, values: Sequence[str]) -> None:
    """Raises ValueError that names the first value that is there twice."""
    seen: set[str] = set()
    for value in values:
        if value in seen:
            raise ValueError(f"{what} {value!r} is used twice")
        seen.add(value)

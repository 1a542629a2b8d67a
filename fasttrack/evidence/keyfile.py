# SPDX-License-Identifier: Apache-2.0
"""Ed25519 keys in files.

A private key is written once, readable by its owner alone, and is refused when others can read it:
whoever can read it can sign. Files hold PEM (PKCS #8, SubjectPublicKeyInfo); a private key may also
be its 32-byte seed as 64 hexadecimal digits.
"""

import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)
from pydantic import ValidationError
from securesystemslib.signer import CryptoSigner, Signer, SSlibKey

from fasttrack.errors import InputError
from fasttrack.evidence.statement import problems_of
from fasttrack.evidence.trust import key_refusals
from fasttrack.policy.trust import ROOT_FILE, Key, Trust
from fasttrack.vocabulary import Kind

PUBLIC_SUFFIX = ".pub"
PROPOSED_DAYS = 365
MAX_BYTES = 16 * 1024
WANTED = "an ed25519 key: PEM, or a seed of 64 hexadecimal digits"
_PRIVATE_MODE, _PUBLIC_MODE = 0o600, 0o644
_OTHERS = 0o077
_SEED = re.compile(rb"[0-9a-fA-F]{64}\s*")
_KEY_ID = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")


@dataclass(frozen=True)
class CheckedKey:
    """One key or identity of the policy, or one file beside it that the policy does not know.

    Attributes:
        id: its name.
        faults: what is wrong with it, one sentence each; empty when nothing is.
    """

    id: str
    faults: tuple[str, ...]


def proposed_key(
    key_id: str,
    *,
    roles: Sequence[str],
    kinds: Sequence[Kind],
    pool: str,
    hardware: Sequence[str],
    day: date,
) -> Key:
    """What a policy could say of a key that is not made yet; its public half is zeros.

    Args:
        key_id: its name.
        roles: what its holder does.
        kinds: evidence kinds that it may sign.
        pool: the group of machines that it speaks for.
        hardware: ids of the machines that it may sign for.
        day: the first day on which it may sign, of a year.

    Raises:
        InputError: no policy could say so.
    """
    last = date.fromordinal(min(day.toordinal() + PROPOSED_DAYS, date.max.toordinal()))
    said = {
        "id": key_id,
        "public": "0" * 64,
        "roles": roles,
        "kinds": kinds,
        "pool": pool,
        "hardware": hardware,
        "valid_from": day,
        "valid_until": last,
    }
    try:
        return Key.model_validate(said)
    except ValidationError as error:
        raise InputError(problems_of(error, "keys new")) from error


def new_key(key_id: str, path: Path, public_path: Path | None = None) -> str:
    """Writes a new private key, and its public half where asked.

    Args:
        key_id: what the policy will call it.
        path: where the private key goes; nothing may be there.
        public_path: where the public key goes; nothing may be there.

    Returns:
        The public key as the policy wants it: 64 hexadecimal digits.

    Raises:
        InputError: the id is no name of a key, or a file can not be written safely; then neither
            is there.
    """
    check_key_id(key_id)
    private = Ed25519PrivateKey.generate()
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    public = private.public_key()
    _write_new(path, pem, _PRIVATE_MODE)
    if public_path is not None:
        public_pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        try:
            _write_new(public_path, public_pem, _PUBLIC_MODE)
        except BaseException:
            path.unlink()
            raise
    return _hex(public)


def check_key_id(key_id: str) -> None:
    """Raises InputError when a policy could not call a key so."""
    if not _KEY_ID.fullmatch(key_id):
        want = "a lower-case name of at most 64 letters, digits, dots, dashes and underscores"
        raise InputError.one("--id", repr(key_id), want)


def read_signer(path: Path, key_id: str) -> Signer:
    """What signs with a private key file.

    Args:
        path: the file; only its owner may be able to read it.
        key_id: the policy's name of the key.

    Raises:
        InputError: no private key, or others can read it.
    """
    raw, mode = _read(path)
    private = _private(raw, path)
    if private is None:
        raise InputError.one(str(path), "a public key", "a private key")
    _require_closed(path, mode)
    return CryptoSigner(private, SSlibKey.from_crypto(private.public_key(), key_id))


def read_public(path: Path) -> str:
    """The public half of a private or public key file, 64 hexadecimal digits.

    Raises:
        InputError: no key, or a private key that others can read.
    """
    raw, mode = _read(path)
    private = _private(raw, path)
    if private is not None:
        _require_closed(path, mode)
        return _hex(private.public_key())
    try:
        public = load_pem_public_key(raw)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise InputError.one(str(path), "no key", WANTED) from error
    if not isinstance(public, Ed25519PublicKey):
        raise InputError.one(str(path), "a key of another kind", WANTED)
    return _hex(public)


def read_public_files(folder: Path) -> Mapping[str, str]:
    """Key id to public key, for the `<id>.pub` files of a folder.

    Raises:
        InputError: a file holds no key, or a private one.
    """
    found: dict[str, str] = {}
    for path in sorted(folder.glob(f"*{PUBLIC_SUFFIX}")):
        if _private(_read(path)[0], path) is not None:
            fix = "revoke it: whoever has this repository can sign with it"
            raise InputError.one(str(path), "a private key", "a public key", fix)
        found[path.name.removesuffix(PUBLIC_SUFFIX)] = read_public(path)
    return found


def check_keys(trust: Trust, files: Mapping[str, str], day: date) -> tuple[CheckedKey, ...]:
    """Compares the policy's keys with the public key files beside it, and its sigstore root.

    Args:
        trust: the policy's, with the root that was found.
        files: key id to public key.
        day: the UTC day on which keys and identities should be able to sign.
    """
    known = {key.id for key in trust.keys}
    checked = [CheckedKey(key.id, tuple(_faults(key, files, day))) for key in trust.keys]
    checked += [
        CheckedKey(one.id, tuple(refusal.text for refusal in key_refusals(one, day, day)))
        for one in trust.identities
    ]
    if trust.sigstore_root is not None:
        saw = f"it is not there, or not of the digest {trust.sigstore_root}"
        checked.append(CheckedKey(ROOT_FILE, () if trust.root is not None else (saw,)))
    unknown = "the policy has no such key"
    return (*checked, *(CheckedKey(name, (unknown,)) for name in files if name not in known))


def _faults(key: Key, files: Mapping[str, str], day: date) -> Iterator[str]:
    public = files.get(key.id)
    if public is None:
        yield f"there is no file {key.id}{PUBLIC_SUFFIX}"
    elif public != key.public:
        yield f"{key.id}{PUBLIC_SUFFIX} is {public}, and the policy says {key.public}"
    for refusal in key_refusals(key, day, day):
        yield refusal.text


def _hex(public: Ed25519PublicKey) -> str:
    return public.public_bytes(Encoding.Raw, PublicFormat.Raw).hex()


def _private(raw: bytes, path: Path) -> Ed25519PrivateKey | None:
    """The private key in a file; None when there is none in it.

    Raises:
        InputError: a private key that can not be used.
    """
    if _SEED.fullmatch(raw):
        return Ed25519PrivateKey.from_private_bytes(bytes.fromhex(raw.decode("ascii")))
    if b"PRIVATE KEY" not in raw:
        return None
    try:
        private = load_pem_private_key(raw, password=None)
    except TypeError as error:
        raise InputError.one(str(path), "an encrypted key", "one without a password") from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise InputError.one(str(path), "no private key", WANTED) from error
    if not isinstance(private, Ed25519PrivateKey):
        raise InputError.one(str(path), "a private key of another kind", WANTED)
    return private


def _read(path: Path) -> tuple[bytes, int]:
    """The bytes of a key file and the mode of the file that they are from."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:  # noqa: PTH123  (pathlib opens no descriptors)
            mode = os.fstat(descriptor).st_mode
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        saw = error.strerror or "unreadable"
        raise InputError.one(str(path), saw, "a key file that can be read") from error
    if len(raw) > MAX_BYTES:
        raise InputError.one(str(path), "a larger file", f"at most {MAX_BYTES:,} bytes")
    return raw, mode


def _require_closed(path: Path, mode: int) -> None:
    if mode & _OTHERS:
        saw = f"a private key of mode {stat.S_IMODE(mode):04o}, which others can use"
        raise InputError.one(
            str(path), saw, "one that only its owner can read", f"chmod 600 {path}"
        )


def _write_new(path: Path, content: bytes, mode: int) -> None:
    """Writes a file that is not there yet, with exactly this mode."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        folder = path.parent.stat().st_mode
        if folder & stat.S_IWOTH and not folder & stat.S_ISVTX:
            saw = f"{path.parent}, a folder in which everybody can replace files"
            raise InputError.one(str(path), saw, "a folder of yours", f"chmod o-w {path.parent}")
        descriptor = os.open(path, flags, mode)
    except FileExistsError as error:
        fix = "name another file; a key is never overwritten"
        raise InputError.one(str(path), "a file that is there", "no file", fix) from error
    except OSError as error:
        saw = error.strerror or "not writable"
        raise InputError.one(str(path), saw, "a file that can be made") from error
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123
            os.fchmod(descriptor, mode)
            file.write(content)
            file.flush()
            os.fsync(descriptor)
    except OSError as error:
        with suppress(FileNotFoundError):
            path.unlink()
        saw = error.strerror or "not writable"
        raise InputError.one(str(path), saw, "room for a key") from error

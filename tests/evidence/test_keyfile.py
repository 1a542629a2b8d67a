# SPDX-License-Identifier: Apache-2.0
"""Key files: written once, for their owner alone, and read only when that is still so."""

import hashlib
import os
import stat
from datetime import date, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from hypothesis import given
from hypothesis import strategies as st

from fasttrack.errors import InputError
from fasttrack.evidence.dsse import read_envelope, sign, verified_key_ids
from fasttrack.evidence.keyfile import (
    MAX_BYTES,
    CheckedKey,
    check_keys,
    new_key,
    read_public,
    read_public_files,
    read_signer,
)
from fasttrack.policy.trust import Trust
from fasttrack.vocabulary import Kind
from tests.evidence.keys import DAY, identity, key, trust
from tests.evidence.strategies import good

LAB_PUB = Path(__file__).resolve().parents[2] / "manifests" / "keys" / "lab-h200.pub"
LAB_HEX = "1493b9993a197357e897aea254670a0a649cacc089994601e62f9c7f59e3a538"
# RFC 8032, 7.1, test 1
SEED = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"
SEED_PUBLIC = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
AS_OF = f"--as-of={DAY}"


def put(path: Path, content: bytes | str, mode: int = 0o600) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    path.chmod(mode)
    return path


def pem(private: ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey) -> bytes:
    return private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def public_pem(private: ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey) -> bytes:
    return private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def test_a_new_key_signs_what_its_public_half_verifies(tmp_path: Path) -> None:
    public = new_key("lab", tmp_path / "lab.pem", tmp_path / "lab.pub")
    line = sign(good(Kind.KERNEL_TEST), read_signer(tmp_path / "lab.pem", "lab"))
    assert verified_key_ids(read_envelope(line, "x"), [key("lab", public=public)]) == {"lab"}
    assert read_public(tmp_path / "lab.pem") == read_public(tmp_path / "lab.pub") == public


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o177])
def test_a_new_private_key_is_for_its_owner_alone_whatever_the_umask(
    tmp_path: Path, umask: int
) -> None:
    before = os.umask(umask)
    try:
        new_key("lab", tmp_path / "lab.pem", tmp_path / "lab.pub")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "lab.pem").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "lab.pub").stat().st_mode) == 0o644


def test_two_new_keys_differ(tmp_path: Path) -> None:
    assert new_key("a", tmp_path / "a") != new_key("a", tmp_path / "b")


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    there = put(tmp_path / "there", "mine")
    with pytest.raises(InputError, match="never overwritten"):
        new_key("lab", there)
    with pytest.raises(InputError, match="never overwritten"):
        new_key("lab", tmp_path / "lab.pem", there)
    assert there.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [there]


def test_private_and_public_key_are_two_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a file that is there"):
        new_key("lab", tmp_path / "lab", tmp_path / "lab")
    assert list(tmp_path.iterdir()) == []


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with pytest.raises(InputError):
        new_key("lab", tmp_path / "link")
    assert not (tmp_path / "target").exists()


def test_a_folder_that_everybody_can_write_is_refused_unless_it_is_sticky(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    with pytest.raises(InputError, match=r"chmod o-w .*shared"):
        new_key("lab", shared / "lab.pem")
    assert list(shared.iterdir()) == []
    shared.chmod(0o1777)
    new_key("lab", shared / "lab.pem")


def test_a_folder_that_is_not_there_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        new_key("lab", tmp_path / "nothing" / "lab.pem")


@pytest.mark.parametrize("key_id", ["", "Lab", "a b", "-x", "a" * 65, 'a"', "a\n", "ä"])
def test_an_id_that_no_policy_could_name_is_refused(tmp_path: Path, key_id: str) -> None:
    with pytest.raises(InputError):
        new_key(key_id, tmp_path / "lab.pem")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o601, 0o666])
def test_a_private_key_that_others_can_use_is_refused_with_the_fix(
    tmp_path: Path, mode: int
) -> None:
    for name, content in (("pem", pem(ed25519.Ed25519PrivateKey.generate())), ("seed", SEED)):
        path = put(tmp_path / name, content, mode)
        for read in (lambda p: read_signer(p, "lab"), read_public):
            with pytest.raises(InputError, match=f"chmod 600 {path}"):
                read(path)
        path.chmod(0o600)
        read_signer(path, "lab")


def test_a_seed_gives_the_public_key_of_the_standard_s_example(tmp_path: Path) -> None:
    assert read_public(put(tmp_path / "seed", SEED + "\n")) == SEED_PUBLIC
    assert read_public(put(tmp_path / "seed", SEED.upper())) == SEED_PUBLIC
    signer = read_signer(tmp_path / "seed", "lab")
    assert signer.public_key.keyid == "lab"
    assert signer.sign(b"").signature.startswith("e5564300c360ac729086e2cc806e828a")


def test_the_project_s_own_public_key_is_read() -> None:
    assert read_public(LAB_PUB) == LAB_HEX


PRIVATE = ed25519.Ed25519PrivateKey.from_private_bytes(bytes.fromhex(SEED))
CURVE = ec.generate_private_key(ec.SECP256R1())
NO_KEYS: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "no key"),
    "words": (b"hello", "no key"),
    "half a seed": (SEED[:32].encode(), "no key"),
    "two seeds": ((SEED * 2).encode(), "no key"),
    "a private key of another curve": (pem(CURVE), "a private key of another kind"),
    "a public key of another curve": (public_pem(CURVE), "a key of another kind"),
    "a private key with a password": (
        PRIVATE.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"x")),
        "an encrypted key",
    ),
    "half a private key": (pem(PRIVATE)[:60], "no private key"),
    "a private key of rubbish": (
        b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
        "no private key",
    ),
    "a file without end": (b" " * (MAX_BYTES + 1), "a larger file"),
}


@pytest.mark.parametrize("name", NO_KEYS)
def test_what_is_no_key_of_ours_is_bad_input(tmp_path: Path, name: str) -> None:
    content, saw = NO_KEYS[name]
    path = put(tmp_path / "key", content)
    with pytest.raises(InputError) as caught:
        read_public(path)
    assert caught.value.problems[0].saw == saw


@given(st.binary(max_size=200) | st.binary(max_size=90).map(lambda b: b"PRIVATE KEY" + b))
def test_random_bytes_are_no_key(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    path = put(tmp_path_factory.getbasetemp() / "random", raw)
    with pytest.raises(InputError):
        read_public(path)


def test_a_public_key_does_not_sign(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a public key"):
        read_signer(put(tmp_path / "x.pub", public_pem(PRIVATE), 0o644), "lab")


def test_a_folder_and_a_missing_file_are_no_keys(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(InputError):
            read_public(path)


# What the policy says of keys

PUBLIC = key("lab").public
CHECKS: dict[str, tuple[dict[str, object], dict[str, str], str]] = {
    "in both": ({}, {"lab": PUBLIC}, ""),
    "without a file": ({}, {}, "there is no file lab.pub"),
    "of other bytes": ({}, {"lab": SEED_PUBLIC}, f"lab.pub is {SEED_PUBLIC}, and the policy says"),
    "revoked": ({"revoked": DAY}, {"lab": PUBLIC}, "key lab is revoked from 2026-11-29 on"),
    "revoked tomorrow": ({"revoked": DAY + timedelta(1)}, {"lab": PUBLIC}, ""),
    "expired": ({"valid_until": date(2026, 11, 28)}, {"lab": PUBLIC}, "valid until 2026-11-28"),
    "on its last day": ({"valid_until": DAY}, {"lab": PUBLIC}, ""),
    "not yet valid": ({"valid_from": date(2026, 11, 30)}, {"lab": PUBLIC}, "from 2026-11-30"),
    "on its first day": ({"valid_from": DAY}, {"lab": PUBLIC}, ""),
}


@pytest.mark.parametrize("name", CHECKS)
def test_a_key_of_the_policy_is_compared_with_its_file_and_the_day(name: str) -> None:
    changes, public_files, said = CHECKS[name]
    (checked,) = check_keys(trust(key("lab", **changes)), public_files, DAY)
    assert checked.id == "lab"
    assert [said in fault for fault in checked.faults] == ([True] if said else [])


IDENTITIES: dict[str, tuple[dict[str, object], bytes | None, list[bool]]] = {
    "with its root": ({}, b"root", [True, True]),
    "without a root": ({}, None, [True, False]),
    "with another root": ({}, b"root\n", [True, False]),
    "revoked": ({"revoked": DAY}, b"root", [False, True]),
    "expired": ({"valid_until": date(2026, 11, 28)}, b"root", [False, True]),
}


@pytest.mark.parametrize("name", IDENTITIES)
def test_an_identity_is_checked_on_the_day_and_the_root_by_its_digest(name: str) -> None:
    changes, root, good_ones = IDENTITIES[name]
    asked = Trust(
        identities=(identity("ci", **changes),),
        sigstore_root=hashlib.sha256(b"root").hexdigest(),
    ).with_root(root)
    checked = check_keys(asked, {}, DAY)
    assert [one.id for one in checked] == ["ci", "keys/sigstore-root.json"]
    assert [not one.faults for one in checked] == good_ones


def test_a_file_without_a_policy_key_is_told() -> None:
    checked = check_keys(trust(key("lab")), {"lab": PUBLIC, "old": SEED_PUBLIC}, DAY)
    assert checked == (CheckedKey("lab", ()), CheckedKey("old", ("the policy has no such key",)))


def test_a_private_key_among_the_public_ones_is_refused_loudly(tmp_path: Path) -> None:
    put(tmp_path / "lab.pub", pem(PRIVATE), 0o644)
    with pytest.raises(InputError, match="revoke it"):
        read_public_files(tmp_path)


def test_a_folder_without_keys_is_empty(tmp_path: Path) -> None:
    assert read_public_files(tmp_path / "nothing") == {}

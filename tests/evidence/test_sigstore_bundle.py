# SPDX-License-Identifier: Apache-2.0
"""Sigstore bundles: what an identity signed counts as what a key signed does; nothing else."""

import json
import socket
import subprocess
import sys
from datetime import date, timedelta

import pytest

from fasttrack.evidence.accept import accept, signatures
from fasttrack.evidence.dsse import Signed, read_envelope, sign
from fasttrack.evidence.garbage import garbage
from fasttrack.evidence.predicates.common import TestResults as Results
from fasttrack.evidence.sigstore_bundle import EXTRA, read_bundle
from fasttrack.evidence.statement import Statement
from fasttrack.evidence.store import Stored
from fasttrack.evidence.trust import Judged
from fasttrack.policy.trust import Trust
from fasttrack.vocabulary import Kind
from tests.evidence.bundles import GOOD, INSTANCE, LINE, ROOT, STATEMENT, Whole, trusting
from tests.evidence.keys import DAY, ISSUER, SUBJECT, identity, key, signer
from tests.evidence.sigstore_instance import Asked, Instance
from tests.evidence.strategies import FINISHED, good


def one(line: bytes, trust: Trust, statement: Statement = STATEMENT) -> Judged:
    (judged,) = accept([Stored("x", read_bundle(line, "x"), statement)], trust, DAY)
    return judged


def reasons(judged: Judged) -> list[str]:
    return [refusal.reason.value for refusal in judged.refusals]


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("newer", [False, True])
def test_what_an_identity_signed_counts_for_its_pool(newer: bool) -> None:
    judged = one(INSTANCE.bundle(STATEMENT, Asked(newer=newer)), trusting())
    assert judged == Judged(STATEMENT, True, frozenset({"ci-pool"}), ())


def test_an_e_mail_address_is_an_identity_too() -> None:
    asked = Asked(subject="runner@example.com")
    line = INSTANCE.bundle(STATEMENT, asked)
    assert one(line, trusting(identity(subject=asked.subject))).accepted
    assert not one(line, trusting(identity(subject="other@example.com"))).accepted


def test_a_statement_that_shows_nothing_counts_for_nothing_whoever_signed_it() -> None:
    failed = good(Kind.KERNEL_TEST, {"results": Results(failed=("a",))})
    assert reasons(one(INSTANCE.bundle(failed), trusting(), failed)) == ["shows-nothing"]


STRANGERS: dict[str, tuple[bytes, str, str]] = {
    "another instance": (
        Instance().bundle(STATEMENT),
        "not-verifiable",
        "does not verify this bundle",
    ),
    "another log": (
        Instance(authority=INSTANCE.authority, promises=INSTANCE.promises).bundle(STATEMENT),
        "bad-signature",
        "does not verify this bundle",
    ),
    "a certificate promised to another log": (
        Instance(authority=INSTANCE.authority, log=INSTANCE.log).bundle(STATEMENT),
        "not-verifiable",
        "SCT",
    ),
    "another subject": (
        INSTANCE.bundle(STATEMENT, Asked(subject=SUBJECT + "-2")),
        "unknown-identity",
        SUBJECT + "-2",
    ),
    "another issuer": (
        INSTANCE.bundle(STATEMENT, Asked(issuer=ISSUER + "/2")),
        "unknown-identity",
        SUBJECT,
    ),
    "a log's entry after the certificate's end": (
        INSTANCE.bundle(STATEMENT, Asked(lifetime=timedelta(minutes=4))),
        "not-verifiable",
        "not valid",
    ),
    "a log's entry of another payload": (
        INSTANCE.bundle(STATEMENT, Asked(logged_payload=b"{}")),
        "bad-signature",
        "payload",
    ),
}


@pytest.mark.parametrize("name", STRANGERS)
def test_a_bundle_of_somebody_else_counts_for_nothing_and_says_why(name: str) -> None:
    line, reason, said = STRANGERS[name]
    judged = one(line, trusting())
    assert not judged.accepted
    (refusal,) = judged.refusals
    assert refusal.reason.value == reason
    assert said in refusal.text


UNREADY: dict[str, tuple[Trust, str, str]] = {
    "no identities": (Trust(keys=(key("lab"),)), "unknown-identity", "trusts no identity"),
    "no root": (
        trusting().with_root(None),
        "not-verifiable",
        "that the policy names is not in keys/",
    ),
    "a root of another digest": (
        trusting().with_root(ROOT + b"\n"),
        "not-verifiable",
        "that the policy names is not in keys/",
    ),
    "no root in the file": (trusting(root=b"{}"), "not-verifiable", "is no sigstore root"),
    "no text in the file": (trusting(root=b"\xff"), "not-verifiable", "is no sigstore root"),
    "a root without logs": (
        trusting(root=json.dumps(json.loads(ROOT) | {"tlogs": []}).encode()),
        "not-verifiable",
        "is no sigstore root",
    ),
    "a root without certificate logs": (
        trusting(root=json.dumps(json.loads(ROOT) | {"ctlogs": []}).encode()),
        "not-verifiable",
        "CTFE",
    ),
}


@pytest.mark.parametrize("name", UNREADY)
def test_a_policy_that_can_not_verify_bundles_counts_none_and_says_why(name: str) -> None:
    trust, reason, said = UNREADY[name]
    judged = one(LINE, trust)
    assert reasons(judged) == [reason]
    assert said in judged.refusals[0].text


def test_without_the_extra_a_bundle_counts_for_nothing_and_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("sigstore", "sigstore.verify"):
        monkeypatch.setitem(sys.modules, name, None)
    judged = one(LINE, trusting())
    assert reasons(judged) == ["not-verifiable"]
    assert f"pip install '{EXTRA}'" in judged.refusals[0].text


def test_a_bundle_that_can_not_be_verified_here_is_no_garbage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stored = [Stored("f:1", GOOD, STATEMENT)]
    (useless,) = garbage(stored, [], {}, trusting(), DAY)
    assert useless.reasons == ("no manifest has such a kernel-test cell any more",)
    monkeypatch.setitem(sys.modules, "sigstore.verify", None)
    assert garbage(stored, [], {}, trusting(), DAY) == ()


@pytest.mark.parametrize(("days", "expected"), [(1, []), (2, ["from-the-future"])])
def test_what_was_signed_long_before_its_run_ended_counts_for_nothing(
    days: int, expected: list[str]
) -> None:
    # Signed ten minutes after FINISHED, with a certificate that ended five minutes later.
    early = good(Kind.KERNEL_TEST, finished=FINISHED + timedelta(days=days))
    judged = one(INSTANCE.bundle(early), trusting(), early)
    assert reasons(judged) == expected
    assert judged.accepted == (not expected)
    assert all("signed by 2026-11-20" in refusal.text for refusal in judged.refusals)


LIMITS: dict[str, tuple[Whole, list[str]]] = {
    "none in its way": ({}, []),
    "revoked": ({"revoked": DAY}, ["revoked-key"]),
    "expired": ({"valid_until": date(2026, 11, 19)}, ["expired-key"]),
    "not yet valid": ({"valid_from": date(2026, 11, 21)}, ["key-not-yet-valid"]),
    "a reviewer's": ({"roles": ("reviewer",)}, ["wrong-role"]),
    "for another kind": ({"kinds": (Kind.STRESS,)}, ["wrong-kind"]),
    "for other hardware": ({"hardware": ("cpu",)}, ["wrong-hardware"]),
}


@pytest.mark.parametrize("name", LIMITS)
def test_an_identity_counts_for_what_it_may_sign(name: str) -> None:
    changes, expected = LIMITS[name]
    judged = one(LINE, trusting(identity(**changes)))
    assert reasons(judged) == expected
    assert judged.accepted == (not expected)
    assert all(refusal.text.startswith("identity ci ") for refusal in judged.refusals)


@pytest.mark.parametrize(("pool", "agreeing"), [("lab-pool", False), ("ci-pool", True)])
def test_a_key_and_an_identity_agree_unless_they_are_of_one_pool(pool: str, agreeing: bool) -> None:
    asked = trusting(identity(pool=pool), keys=(key("lab"),), thresholds={Kind.KERNEL_TEST: 2})
    other = good(Kind.KERNEL_TEST, run="3" * 32)
    by_key = read_envelope(sign(other, signer("lab")), "x")
    stored = [Stored("x", by_key, other), Stored("y", GOOD, STATEMENT)]
    assert [judged.accepted for judged in accept(stored, asked, DAY)] == [agreeing, agreeing]


def test_one_certificate_counts_for_one_pool_however_many_identities_fit_it() -> None:
    wide = identity("wide", subject=SUBJECT.replace("main", "m*"))
    asked = trusting(identity(), wide, thresholds={Kind.KERNEL_TEST: 2})
    assert reasons(one(LINE, asked)) == ["below-threshold"]
    assert signatures(GOOD, asked).named == ("ci",)
    assert signatures(GOOD, trusting(wide, identity())).named == ("wide",)


def test_another_payload_than_the_verified_one_counts_for_nothing() -> None:
    found = signatures(Signed(b"{}", (), GOOD.bundle), trusting())
    assert found.valid == frozenset()
    assert found.refusals[0].text == "sigstore verifies another payload than this"


def test_an_envelope_that_names_an_identity_as_its_key_counts_for_nothing() -> None:
    signed = read_envelope(sign(STATEMENT, signer("ci")), "x")
    (judged,) = accept([Stored("x", signed, STATEMENT)], trusting(), DAY)
    assert reasons(judged) == ["bad-signature"]


def test_reading_a_bundle_loads_neither_sigstore_nor_cryptography() -> None:
    code = (
        "import sys, fasttrack.evidence.accept\n"
        "from fasttrack.evidence.store import read_signed\n"
        "assert read_signed(sys.stdin.buffer.read(), 'x').bundle\n"
        "sys.exit(any(m.split('.')[0] in {'cryptography', 'securesystemslib', 'sigstore'} "
        "for m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], input=LINE, check=False)
    assert done.returncode == 0

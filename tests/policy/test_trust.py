# SPDX-License-Identifier: Apache-2.0
"""Whom a policy can trust, and which certificate is whose."""

import hashlib
import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from fasttrack.errors import InputError
from fasttrack.policy.load import load_policy
from fasttrack.policy.trust import Trust
from tests.engine import POLICY, files
from tests.evidence.keys import SUBJECT, identity, key

CASES = yaml.safe_load((Path(__file__).parent / "subjects.yaml").read_text("utf-8"))


@pytest.mark.parametrize("case", CASES["covered"], ids=lambda case: str(case["subject"]))
def test_a_subject_covers_what_it_says_and_nothing_beside(case: dict[str, list[str] | str]) -> None:
    pattern = identity(subject=case["subject"])
    assert [name for name in case["covers"] if not pattern.is_of(name)] == []
    assert [name for name in case["not"] if pattern.is_of(name)] == []


@pytest.mark.parametrize("subject", CASES["refused"])
def test_a_subject_that_is_not_bounded_is_refused(subject: str) -> None:
    with pytest.raises(ValidationError):
        identity(subject=subject)


@given(st.from_regex(r"https://[a-z.]{1,9}/[a-z/]{1,9}@[a-z/.]{0,6}\*[a-z/]{0,4}", fullmatch=True))
def test_a_star_never_reaches_past_a_slash_or_in_front_of_the_ref(subject: str) -> None:
    pattern = identity(subject=subject)
    for text in ("main", "v1.2", "a" * 64):
        assert pattern.is_of(subject.replace("*", text))
    for text in ("", "a/b", "a@b", "a" * 65, "a\n", "a b", "\u00e4"):
        assert not pattern.is_of(subject.replace("*", text))
    assert not pattern.is_of("x" + subject.replace("*", "main"))
    assert not pattern.is_of(subject.replace("*", "main") + "/x")


@given(st.text(max_size=60))
def test_an_exact_subject_is_of_itself_alone(other: str) -> None:
    assert identity().is_of(other) == (other == SUBJECT)
    assert identity().is_of(SUBJECT)


LIMITS = """      roles: [runner]
      kinds: [stress]
      pool: ci
      hardware: [h200]
      valid_from: 2026-01-01
      valid_until: 2026-12-31
"""
DIGEST = f'"{"5" * 64}"'


def lines(
    *,
    root: str = DIGEST,
    ids: tuple[str, ...] = ("ci",),
    key_ids: tuple[str, ...] = (),
    public: str = "",
    issuer: str = "https://token.example.com",
    subject: str = SUBJECT,
) -> str:
    """A policy that trusts these identities and keys."""
    text = f"trust:\n  sigstore_root: {root}\n  identities:\n"
    for name in ids:
        text += f"    - id: {name}\n      issuer: {issuer}\n      subject: {subject}\n{LIMITS}"
    text += "  keys:\n" if key_ids else ""
    for name in key_ids:
        text += f'    - id: {name}\n      public: "{public or key(name).public}"\n{LIMITS}'
    return files()[POLICY] + text


DOUBTFUL = {
    "an identity and a key of one name": (lines(key_ids=("ci",)), "id 'ci' is used twice"),
    "two keys of one public half": (
        lines(key_ids=("lab", "cloud"), public=key("lab").public),
        f"public half '{key('lab').public}' is used twice",
    ),
    "two identities of one name": (lines(ids=("ci", "ci")), "identity id 'ci' is used twice"),
    "two identities of one subject": (lines(ids=("ci", "cd")), "is used twice"),
    "an identity without a root": (lines(root="null"), "identities need sigstore_root"),
    "a root that is no digest": (lines(root="root.json"), "sigstore_root"),
    "an issuer that is no address": (lines(issuer="token.example.com"), "issuer"),
    "a subject with a blank": (lines(subject="'a b'"), "subject"),
}


@pytest.mark.parametrize("name", DOUBTFUL)
def test_doubtful_trust_is_refused_with_its_place(name: str) -> None:
    text, said = DOUBTFUL[name]
    with pytest.raises(InputError) as caught:
        load_policy(text, "policy.yaml")
    assert said in str(caught.value)
    assert re.search(r"policy\.yaml:\d+:\d+: ", str(caught.value))


def test_keys_and_identities_live_side_by_side() -> None:
    trust = load_policy(lines(key_ids=("lab",)), "policy.yaml").trust
    assert [str(one) for one in (*trust.keys, *trust.identities)] == ["key lab", "identity ci"]


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_a_root_is_the_one_with_the_digest_and_no_other(root: bytes, other: bytes) -> None:
    trust = Trust(sigstore_root=hashlib.sha256(root).hexdigest())
    assert trust.root is None
    assert trust.with_root(root).root == root
    assert trust.with_root(other).root == (root if other == root else None)
    assert trust.with_root(root).model_copy(update={"thresholds": {}}).root == root
    assert Trust().with_root(root).root is None

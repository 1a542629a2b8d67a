# SPDX-License-Identifier: Apache-2.0
"""Flipping any single byte of a file makes it invalid or changes nothing that matters.

Envelopes, sigstore bundles and collected bundles have theirs beside their other tests; here are
the files around them. What nobody signs (a plan, a result of another tool) can become another valid
one, and then it must be that one in every byte that is read, and nothing of the old one.
"""

import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fasttrack.errors import InputError
from fasttrack.evidence.dsse import read_envelope, sign, verified_key_ids
from fasttrack.evidence.keyfile import check_keys, new_key, read_public, read_signer
from fasttrack.evidence.plan import Plan, parse_plan
from fasttrack.evidence.store import read_file
from fasttrack.policy.trust import Trust
from fasttrack.vocabulary import Kind
from tests.evidence.importers.builders import CASES, files
from tests.evidence.importers.test_fuzz import tried
from tests.evidence.keys import DAY, key, trust
from tests.evidence.plans import plan_of
from tests.evidence.sigstore_instance import Instance
from tests.evidence.stores import CONTENT, named, put
from tests.evidence.strategies import good

STATEMENT = good(Kind.KERNEL_TEST)
ROOT = Instance().root()


def flipped(data: st.DataObject, raw: bytes) -> bytes:
    """The same bytes but for one."""
    place = data.draw(st.integers(0, len(raw) - 1), "place")
    mask = data.draw(st.integers(1, 255), "mask")
    return raw[:place] + bytes([raw[place] ^ mask]) + raw[place + 1 :]


@given(st.data())
def test_a_flipped_byte_of_an_evidence_file_voids_the_whole_file(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("store")
    path = put(folder, flipped(data, CONTENT), named(CONTENT))
    contents = read_file(path)
    assert contents.statements == ()
    assert [problem.want for problem in contents.problems] == ["the bytes that it is named by"]


@given(st.data())
def test_a_flipped_byte_of_a_sigstore_root_leaves_no_root(data: st.DataObject) -> None:
    asked = Trust(sigstore_root=hashlib.sha256(ROOT).hexdigest())
    assert asked.with_root(ROOT).root == ROOT
    assert asked.with_root(flipped(data, ROOT)).root is None


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    return plan_of(tmp_path_factory.mktemp("repo"))


@settings(max_examples=300)
@given(data=st.data())
def test_a_flipped_byte_of_a_plan_makes_it_none_or_another_that_says_all_that_is_written(
    plan: Plan, data: st.DataObject
) -> None:
    raw = flipped(data, plan.to_bytes())
    try:
        read = parse_plan(raw, "plan.json")
    except InputError:
        return
    assert json.loads(read.to_bytes()) == json.loads(raw)
    assert (read == plan) == (json.loads(raw) == json.loads(plan.to_bytes()))


@pytest.fixture(scope="module")
def key_files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, str]:
    """A private key file, its public half's, and the public half."""
    folder = tmp_path_factory.mktemp("keys")
    private, public = folder / "lab.key", folder / "lab.pub"
    return private, public, new_key("lab", private, public)


def written(folder: Path, raw: bytes) -> Path:
    path = folder / "flipped"
    path.touch(0o600)
    path.write_bytes(raw)
    return path


@given(data=st.data())
def test_a_flipped_byte_of_a_private_key_makes_it_none_or_one_that_signs_as_itself_alone(
    key_files: tuple[Path, Path, str],
    tmp_path_factory: pytest.TempPathFactory,
    data: st.DataObject,
) -> None:
    private, _, public = key_files
    path = written(tmp_path_factory.mktemp("flip"), flipped(data, private.read_bytes()))
    try:
        signer, half = read_signer(path, "lab"), read_public(path)
    except InputError:
        return
    line = read_envelope(sign(STATEMENT, signer), "x")
    assert verified_key_ids(line, [key("lab", public=half)]) == {"lab"}
    named_so = verified_key_ids(line, [key("lab", public=public)])
    assert named_so == ({"lab"} if half == public else frozenset())


@given(data=st.data())
def test_a_flipped_byte_of_a_public_key_s_file_is_told_unless_it_is_the_same_key(
    key_files: tuple[Path, Path, str],
    tmp_path_factory: pytest.TempPathFactory,
    data: st.DataObject,
) -> None:
    _, public_file, public = key_files
    path = written(tmp_path_factory.mktemp("flip"), flipped(data, public_file.read_bytes()))
    try:
        half = read_public(path)
    except InputError:
        return
    (checked,) = check_keys(trust(key("lab", public=public)), {"lab": half}, DAY)
    assert bool(checked.faults) == (half != public)


@pytest.mark.parametrize("part", ["results", "map", "facts"])
@pytest.mark.parametrize("name", CASES)
@settings(max_examples=40)
@given(data=st.data())
def test_a_flipped_byte_of_another_tool_s_files_is_refused_or_gives_statements_that_read(
    name: str, part: str, data: st.DataObject
) -> None:
    given_files = files(name)
    if part == "results":
        first, *rest = given_files.results
        changed = type(first)(first.name, flipped(data, first.raw))
        tried(files(name, results=[changed, *rest]), name)
        return
    source = getattr(given_files, part)
    tried(files(name, **{part: type(source)(source.name, flipped(data, source.raw))}), name)

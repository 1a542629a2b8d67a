# SPDX-License-Identifier: Apache-2.0
"""Hostile input to every importer is refused or gives statements that hold; it never crashes."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fasttrack.errors import InputError
from fasttrack.evidence.importers import IMPORTERS
from fasttrack.evidence.importers.base import Files, Imported
from fasttrack.evidence.importers.reading import Source
from fasttrack.evidence.statement import read_statement
from tests.evidence.importers.builders import CASES, at, files, paths, put

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(10**40), 10**40)
    | st.floats(allow_nan=True, allow_infinity=True)
    | st.text(max_size=8)
    | st.sampled_from(["inf", "N/A", "passed", "gsm8k", 0, -1, 1e308, 10**400])
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


def tried(given_files: Files, name: str) -> Imported | None:
    """What an import gives, or None when it is refused; anything else fails the test."""
    try:
        found = IMPORTERS[name](given_files)
    except InputError:
        return None
    for statement in found.statements:
        raw = statement.to_bytes()
        assert read_statement(raw, "x").to_bytes() == raw
    return found


def on_both_sides(name: str, raw: bytes) -> Files:
    """The files of a format with the same bytes in place of every result."""
    given_files = files(name)
    results = [Source(source.name, raw) for source in given_files.results]
    baseline = [Source(source.name, raw) for source in given_files.baseline]
    return files(name, results=results, baseline=baseline)


@pytest.mark.parametrize("name", CASES)
@given(raw=st.binary(max_size=200) | values.map(lambda v: json.dumps(v).encode()))
def test_bytes_and_json_without_the_facts_never_become_a_statement(name: str, raw: bytes) -> None:
    assert tried(on_both_sides(name, raw), name) is None


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=60)
@given(data=st.data())
def test_a_result_file_that_is_cut_off_never_becomes_one_of_its_own(
    name: str, data: st.DataObject
) -> None:
    source = files(name).results[0]
    whole = source.raw.rstrip()
    cut = Source(source.name, whole[: data.draw(st.integers(0, len(whole) - 1))])
    found = tried(files(name, results=[cut, *files(name).results[1:]]), name)
    if found is not None:  # lines that were appended whole, in whole pairs
        assert name == "vllm-bench"
        kept = cut.raw.count(b"\n")
        assert found.statements[0].predicate.pairs == kept // 2  # type: ignore[union-attr]


def _objects(source: Source) -> list[Any]:
    return [json.loads(line) for line in source.raw.split(b"\n") if line.strip()]


@pytest.mark.parametrize("name", [name for name in CASES if name != "junit"])
@settings(max_examples=80)
@given(data=st.data())
def test_any_value_in_any_place_of_a_result_is_refused_or_leads_to_a_statement_that_reads(
    name: str, data: st.DataObject
) -> None:
    source = files(name).results[0]
    many = source.name.endswith(".jsonl")
    content = _objects(source) if many else json.loads(source.raw)
    place = data.draw(st.sampled_from(sorted(paths(content), key=str)))
    put(place, data.draw(values))(content)
    raw = "\n".join(map(json.dumps, content)) if many else json.dumps(content)
    changed = Source(source.name, raw.encode())
    tried(files(name, results=[changed, *files(name).results[1:]]), name)


@pytest.mark.parametrize("part", ["map", "facts"])
@pytest.mark.parametrize("name", CASES)
@settings(max_examples=60)
@given(data=st.data())
def test_a_map_or_sidecar_of_any_shape_is_refused_or_leads_to_a_statement_that_reads(
    name: str, part: str, data: st.DataObject
) -> None:
    source: Source = getattr(files(name), part)
    start = data.draw(st.integers(0, len(source.raw)))
    end = data.draw(st.integers(start, min(len(source.raw), start + 40)))
    raw = source.raw[:start] + data.draw(st.binary(max_size=12)) + source.raw[end:]
    tried(files(name, **{part: Source(source.name, raw)}), name)


@given(data=st.data())
def test_any_byte_of_a_junit_file_may_be_another(data: st.DataObject) -> None:
    source = files("junit").results[0]
    where = data.draw(st.integers(0, len(source.raw) - 1))
    byte = bytes([data.draw(st.integers(0, 255))])
    raw = source.raw[:where] + byte + source.raw[where + 1 :]
    tried(files("junit", results=[Source(source.name, raw)]), "junit")


@pytest.mark.parametrize("name", CASES)
def test_nesting_and_numbers_beyond_all_bounds_are_refused(name: str) -> None:
    for raw in (b"[" * 100_000, b'{"a":' * 100_000, b"9" * 10_000, b'{"a": NaN}', b"{}{}"):
        assert tried(on_both_sides(name, raw), name) is None


def test_paths_lead_to_what_they_name() -> None:
    content = {"a": [{"b": 1}], "c": 2}
    assert [at(content, path) for path in paths(content)] == [[{"b": 1}], {"b": 1}, 1, 2]

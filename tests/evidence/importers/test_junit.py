# SPDX-License-Identifier: Apache-2.0
"""JUnit XML: outcomes as pytest means them, and no way in for hostile XML."""

from typing import Any
from xml.sax.saxutils import quoteattr

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasttrack.errors import InputError
from fasttrack.evidence.importers.junit_xml import MAX_DEPTH, OUTCOMES, node_id, read_tests
from fasttrack.evidence.importers.reading import Source
from tests.evidence.importers.builders import edited_yaml, files, imported, put, sample, without

TEST = "tests/kda/test_rows.py::"
LAUGHS = """<!DOCTYPE lolz [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">
<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">]>"""
OUTSIDE = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>'


def suite(*cases: str, counts: str = "") -> Source:
    return Source("j.xml", f"<testsuite {counts}>{''.join(cases)}</testsuite>".encode())


def case(name: str, inside: str = "", classname: str = "tests.test_x") -> str:
    return f'<testcase classname="{classname}" name="{name}">{inside}</testcase>'


@pytest.mark.parametrize("family", ["junit-xunit1.xml", "junit-xunit2.xml"])
def test_outcomes_are_those_that_pytest_wrote_in_both_families(family: str) -> None:
    outcomes = {test.node: test.outcome for test in read_tests(sample(family))}
    assert outcomes == {
        f"{TEST}test_rows[1]": "passed",
        f"{TEST}test_rows[2]": "passed",
        f"{TEST}test_rows[3]": "passed",
        f"{TEST}TestState::test_is_kept": "passed",
        f"{TEST}test_on_a_gpu": "skipped",
        f"{TEST}test_known": "xfailed",
        f"{TEST}test_teardown": "failed",
        f"{TEST}test_wrong": "failed",
        "tests/test_refusals.py::test_rows_past_the_bound_are_refused[65]": "passed",
    }


@pytest.mark.parametrize(
    ("match", "saw"),
    [
        ("*test_on_a_gpu", "no test passed (all skipped)"),
        ("*test_known", "no test passed"),
        ("*test_teardown", "1 tests failed"),
        ("tests/kda/*", "2 tests failed"),
    ],
)
def test_a_test_that_did_not_pass_makes_a_statement_that_shows_nothing(
    match: str, saw: str
) -> None:
    given_map = edited_yaml(files("junit").map, put(("results", 0, "match"), match))
    (kernel, _) = imported("junit", map=given_map).statements
    assert saw in kernel.problems()[0]


def test_a_test_that_was_deselected_counts_as_missing() -> None:
    path = ("cells", "kda-rows", "deselected")
    facts = edited_yaml(files("junit").facts, put(path, [f"{TEST}test_rows[4]"]))
    (kernel, _) = imported("junit", facts=facts).statements
    assert kernel.problems() == [f"1 tests did not run, {TEST}test_rows[4] first"]


def test_of_two_reports_about_one_test_the_worse_counts_in_any_order() -> None:
    good, bad = sample("junit-xunit2.xml"), sample("junit-xunit2.xml").raw
    worse = bad.replace(
        b'name="test_rows[2]" time="0.000" />', b'name="test_rows[2]"><failure/></testcase>', 1
    )
    worse = worse.replace(b'failures="1"', b'failures="2"')
    assert worse != bad
    for results in ([good, Source("b", worse)], [Source("b", worse), good]):
        assert "1 tests failed" in imported("junit", results=results).statements[0].problems()[0]


def test_a_refusal_whose_test_failed_is_an_admission() -> None:
    raw = sample("junit-xunit2.xml").raw.replace(
        b'value="rows 65 &gt; 64" /></properties>',
        b'value="rows 65 &gt; 64" /></properties><failure/>',
    )
    (_, refusal) = imported("junit", results=[Source("j.xml", raw)]).statements
    assert refusal.problems() == ["the gate admitted what is past the bound"]


def test_a_refusal_without_a_reason_is_refused_unless_the_sidecar_has_it() -> None:
    bare = Source(
        "j.xml", sample("junit-xunit2.xml").raw.replace(b'"refusal_reason"', b'"another"')
    )
    with pytest.raises(InputError, match="refusal_reason"):
        imported("junit", results=[bare])
    path = ("cells", "refuse-rows", "reasons")
    facts = edited_yaml(files("junit").facts, put(path, ["rows 65 > 64"]))
    (_, refusal) = imported("junit", results=[bare], facts=facts).statements
    assert refusal.problems() == []


def test_a_kernel_test_names_its_unit_and_is_never_from_a_harness() -> None:
    given = files("junit")
    with pytest.raises(InputError, match="no axis `unit`"):
        imported(
            "junit",
            map=edited_yaml(given.map, without(("results", 0, "values", "unit"))),
            facts=edited_yaml(given.facts, put(("inputs", 0, "unit"), "path")),
        )
    facts = edited_yaml(given.facts, put(("run", "isolation"), "harness"))
    with pytest.raises(InputError, match="own process wrote the file"):
        imported("junit", facts=facts)


def test_a_suite_that_could_not_be_collected_shows_nothing_at_all() -> None:
    results = [sample("junit-xunit2.xml"), sample("junit-not-collected.xml")]
    with pytest.raises(InputError, match="could not be collected"):
        imported("junit", results=results)


@pytest.mark.parametrize("prologue", [LAUGHS, OUTSIDE, "<!DOCTYPE testsuite>"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-be"])
def test_a_document_type_is_refused_in_every_encoding(prologue: str, encoding: str) -> None:
    text = f"{prologue}<testsuite>{case('t', '&c;')}</testsuite>"
    with pytest.raises(InputError, match="a document type"):
        read_tests(Source("j.xml", text.encode(encoding)))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (suite("<x>" * MAX_DEPTH), "elements of JUnit XML"),
        (suite("<testsuite>" * MAX_DEPTH), f"elements {MAX_DEPTH} deep"),
        (Source("j.xml", b"<html/>"), "<testsuites> or <testsuite>"),
        (Source("j.xml", b""), "well-formed XML"),
        (Source("j.xml", b"<testsuite>"), "well-formed XML"),
        (Source("j.xml", b'<?xml version="1.0" encoding="rot13"?><testsuite/>'), "well-formed"),
        (Source("j.xml", b"<testsuite>&nbsp;</testsuite>"), "well-formed XML"),
        (suite(case("t", "<flakyFailure/>")), "an outcome that pytest writes"),
        (suite(case("t", "<rerunError/>")), "an outcome that pytest writes"),
        (suite(case("t", case("u"))), "an outcome that pytest writes"),
        (suite(case("t"), counts='tests="2"'), "a file that holds what it counts"),
        (suite(case("t"), counts='failures="1"'), "a file that holds what it counts"),
        (suite(case("t"), counts='errors="many"'), "a file that holds what it counts"),
        (suite(case("tests.x", "<error/>", "")), "could not be collected"),
    ],
)
def test_a_file_is_refused_for(source: Source, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_tests(source)


def test_a_test_that_the_file_lost_is_missed() -> None:
    raw = sample("junit-xunit2.xml").raw
    line = next(line for line in raw.split(b"\n") if b'"test_wrong"' in line)
    start, end = raw.index(line), raw.index(b"</testcase>", raw.index(line)) + len(b"</testcase>")
    with pytest.raises(InputError, match="a file that holds what it counts"):
        read_tests(Source("j.xml", raw[:start] + raw[end:]))


_names = st.from_regex(r"\A[a-z_][a-z0-9_]{0,8}\Z")
_classes = st.from_regex(r"\A[A-Z][A-Za-z0-9]{0,8}\Z")


@given(
    st.lists(_names, min_size=1, max_size=4),
    st.lists(_classes, max_size=2),
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1),
    st.booleans(),
)
def test_a_node_id_is_found_again_from_what_pytest_writes(
    folders: list[str], classes: list[str], name: str, with_file: bool
) -> None:
    file = "/".join(folders) + ".py"
    attributes = {"classname": ".".join([*folders, *classes]), "name": name}
    if with_file:
        attributes["file"] = file
    assert node_id(attributes) == "::".join([file, *classes, name])


@given(st.lists(st.tuples(_names, st.sampled_from(OUTCOMES)), max_size=12))
def test_every_test_of_a_file_is_read_with_its_outcome(tests: list[tuple[str, str]]) -> None:
    elements = {
        "passed": "",
        "failed": "<failure/>",
        "skipped": "<skipped/>",
        "xfailed": '<skipped type="pytest.xfail"/>',
    }
    cases = [
        f'<testcase classname="m" name={quoteattr(n)}>{elements[o]}</testcase>' for n, o in tests
    ]
    found: Any = [(t.node, t.outcome) for t in read_tests(suite(*cases))]
    assert found == [(f"m.py::{name}", outcome) for name, outcome in tests]

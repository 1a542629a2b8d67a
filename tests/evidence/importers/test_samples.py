# SPDX-License-Identifier: Apache-2.0
"""The sample of each format becomes the statements that it stands for, and no others."""

from typing import Any

import pytest
import yaml

from fasttrack.errors import InputError
from fasttrack.evidence.importers import IMPORTERS
from fasttrack.evidence.statement import Statement, read_statement
from fasttrack.vocabulary import Kind
from tests.evidence.importers.builders import (
    CASES,
    at,
    edited_yaml,
    files,
    imported,
    paths,
    put,
    sample,
    without,
)

KINDS = {
    "junit": [Kind.KERNEL_TEST, Kind.REFUSAL],
    "lm-eval": [Kind.MODEL_EVAL],
    "inspect": [Kind.MODEL_EVAL],
    "vllm-bench": [Kind.PERFORMANCE],
    "aiperf": [Kind.PERFORMANCE],
}
OPTIONAL = {
    ("machine", "driver"),
    ("machine", "cuda"),
    ("machine", "interconnect"),
    ("toolchain", "packages"),
    ("toolchain", "packages", "torch"),
    ("toolchain", "packages", "vllm"),
    ("cells", "kda-rows", "tolerances"),
}
"""What a sidecar may leave out: a statement without it says less, and what it says is true."""
FACTS = [
    (name, path)
    for name, case in CASES.items()
    for path in paths(yaml.safe_load(sample(case.facts).raw))
    if isinstance(path[-1], str)
]
"""Every key of every sample sidecar."""


def only(format_: str, **changes: Any) -> Statement:
    (statement,) = imported(format_, **changes).statements
    return statement


def test_every_format_has_a_sample() -> None:
    assert set(CASES) == set(IMPORTERS) == set(KINDS)


@pytest.mark.parametrize("name", CASES)
def test_a_sample_gives_its_kinds_and_shows_something(name: str) -> None:
    found = imported(name)
    assert [s.cell.kind for s in found.statements] == KINDS[name]
    assert [s.problems() for s in found.statements] == [[] for _ in KINDS[name]]
    assert found.unused == ()


@pytest.mark.parametrize("name", CASES)
def test_what_an_importer_makes_is_read_back_unchanged(name: str) -> None:
    for statement in imported(name).statements:
        raw = statement.to_bytes()
        assert read_statement(raw, "x") == statement
        assert read_statement(raw, "x").to_bytes() == raw


@pytest.mark.parametrize("name", CASES)
def test_a_statement_has_the_cell_of_the_map_and_the_facts_of_the_sidecar(name: str) -> None:
    given = files(name)
    entries = yaml.safe_load(given.map.raw)["results"]
    facts = yaml.safe_load(given.facts.raw)
    for entry, statement in zip(entries, imported(name).statements, strict=True):
        predicate = statement.predicate
        assert dict(statement.cell.values) == entry["values"]
        assert statement.cell.region == entry.get("region", "")
        dumped = predicate.model_dump(mode="json")
        for section in ("run", "machine", "toolchain"):
            assert facts[section].items() <= dumped[section].items()
        wanted = (
            "gate-files" if statement.cell.kind is Kind.REFUSAL else entry["values"].get("unit")
        )
        assert predicate.inputs.unit == (wanted or "path")


@pytest.mark.parametrize(
    ("name", "path"), FACTS, ids=lambda v: v if isinstance(v, str) else ".".join(map(str, v))
)
def test_a_sidecar_without_a_fact_is_refused_with_the_facts_name(
    name: str, path: tuple[str | int, ...]
) -> None:
    facts = edited_yaml(sample(CASES[name].facts), without(path))
    if path in OPTIONAL:
        assert len(imported(name, facts=facts).statements) == len(KINDS[name])
        return
    if path[-2:] == ("execution", "launches"):  # said to be none: a statement that shows nothing
        problems = imported(name, facts=facts).statements[0].problems()
        assert problems == ["nothing of the path was seen to run"]
        return
    with pytest.raises(InputError) as caught:
        imported(name, facts=facts)
    assert f"{path[-1]}" in str(caught.value)


@pytest.mark.parametrize("name", CASES)
def test_a_unit_whose_digests_are_not_known_is_refused(name: str) -> None:
    path = ("inputs", 0, "unit")
    with pytest.raises(InputError, match="no item of `inputs` with `unit: "):
        imported(name, facts=edited_yaml(sample(CASES[name].facts), put(path, "another")))


@pytest.mark.parametrize("name", ["vllm-bench", "aiperf"])
def test_no_condition_of_a_throughput_comes_from_the_map_alone(name: str) -> None:
    source = sample(CASES[name].map)
    values = yaml.safe_load(source.raw)["results"][0]["values"]
    for axis, value in values.items():
        other = value + 1 if isinstance(value, int) else "something-else"
        path = ("results", 0, "values", axis)
        for edit in (put(path, other), without(path)):
            with pytest.raises(InputError) as caught:
                imported(name, map=edited_yaml(source, edit))
            assert axis in str(caught.value) or "backend" in axis


@pytest.mark.parametrize("name", CASES)
def test_an_unknown_key_is_refused_wherever_it_is(name: str) -> None:
    for part in ("map", "facts"):
        source = getattr(files(name), part)
        data = yaml.safe_load(source.raw)
        places = [(), *(p for p in paths(data) if isinstance(at(data, p), dict))]
        open_ = {"values", "packages", "cells"}
        for place in places:
            if place and place[-1] in open_:
                continue
            with pytest.raises(InputError, match="surprise"):
                imported(name, **{part: edited_yaml(source, put((*place, "surprise"), 1))})


@pytest.mark.parametrize("name", CASES)
def test_another_machine_than_the_cells_is_refused(name: str) -> None:
    facts = edited_yaml(sample(CASES[name].facts), put(("machine", "hardware"), "b200"))
    with pytest.raises(InputError, match="hardware"):
        imported(name, facts=facts)


@pytest.mark.parametrize("name", CASES)
def test_a_map_that_names_no_result_is_refused(name: str) -> None:
    def edit(data: Any) -> None:
        for entry in data["results"]:
            entry["match"] = "nothing like it"

    with pytest.raises(InputError, match="no entry that names one of"):
        imported(name, map=edited_yaml(sample(CASES[name].map), edit))


@pytest.mark.parametrize("name", CASES)
def test_a_result_of_two_cells_and_an_id_of_two_entries_are_refused(name: str) -> None:
    def second(data: Any) -> None:
        data["results"].append(data["results"][0] | {"id": "again"})

    def twice(data: Any) -> None:
        data["results"].append(data["results"][0] | {"match": "nothing like it"})

    source = sample(CASES[name].map)
    with pytest.raises(InputError, match="one cell per result"):
        imported(name, map=edited_yaml(source, second))
    with pytest.raises(InputError, match="twice"):
        imported(name, map=edited_yaml(source, twice))


@pytest.mark.parametrize("name", CASES)
def test_an_entry_without_a_result_is_told_and_harms_nothing(name: str) -> None:
    def edit(data: Any) -> None:
        data["results"].append(data["results"][0] | {"id": "later", "match": "nothing like it"})

    found = imported(name, map=edited_yaml(sample(CASES[name].map), edit))
    assert found.unused == ("later",)
    assert found.statements == imported(name).statements


@pytest.mark.parametrize("name", CASES)
def test_fallbacks_of_the_sidecar_are_in_the_statement_and_void_it(name: str) -> None:
    def edit(data: Any) -> None:
        for cell in data["cells"].values():
            if "execution" in cell:
                cell["execution"]["fallbacks"] = 3

    found = imported(name, facts=edited_yaml(sample(CASES[name].facts), edit))
    assert "3 steps fell back" in str(found.statements[0].problems())


@pytest.mark.parametrize("name", ["junit", "vllm-bench"])
def test_a_format_that_needs_no_baseline_takes_none(name: str) -> None:
    with pytest.raises(InputError, match="--baseline"):
        imported(name, baseline=list(files(name).results))


@pytest.mark.parametrize("name", ["lm-eval", "inspect"])
def test_an_evaluation_needs_one_file_of_each_side_and_not_the_same(name: str) -> None:
    given = files(name)
    for baseline in ([], [*given.baseline, *given.baseline]):
        with pytest.raises(InputError, match="one file of each side"):
            imported(name, baseline=baseline)
    with pytest.raises(InputError, match="same bytes"):
        imported(name, baseline=list(given.results))


@pytest.mark.parametrize("name", CASES)
def test_a_sidecar_can_not_claim_an_isolation_that_the_format_rules_out(name: str) -> None:
    given = files(name)
    said = "process" if name != "junit" else "harness"
    facts = edited_yaml(given.facts, put(("run", "isolation"), said))
    with pytest.raises(InputError, match=f"`isolation: {said}` in `run`"):
        imported(name, facts=facts)

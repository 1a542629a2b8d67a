# SPDX-License-Identifier: Apache-2.0
"""Plans as text and as jobs: what is printed parses, and runs what the commands understand."""

import os
import shlex
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from fasttrack.cli.evidence.collect import command as collect
from fasttrack.errors import InputError
from fasttrack.evidence.choice import Choice
from fasttrack.evidence.plan import Plan
from fasttrack.evidence.planning import Planned
from fasttrack.evidence.shards import Shard
from fasttrack.evidence.subject import ANYWHERE, hardware_of
from fasttrack.report.plan import (
    buildkite_snippet,
    github_snippet,
    jobs,
    plan_json,
    plan_text,
    slurm_script,
)
from fasttrack.vocabulary import Kind, Tier
from tests.engine import POLICY, files
from tests.evidence.plans import commit, engine, planned, region

CPU = "  cpu: {gpu: x86-64, arch: x86_64, memory_gb: 1, interconnect: none, domain_gpus: 1}\n"
ODD = "plans of May/it's $HOME.json"


def many(where: Path) -> Plan:
    """A plan for two GPUs and a processor."""
    own = engine(region(hardware=["h100", "h200"], tier="served"))
    own[POLICY] = str(own[POLICY]).replace("\nhardware:\n", f"\nhardware:\n{CPU}")
    commit(where, own)
    return planned(where).plan


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    return many(tmp_path_factory.mktemp("repo"))


def understood(line: str) -> dict[str, Any]:
    """The options of a command line, as the command that it calls reads them."""
    program, group, name, *options = shlex.split(line)
    assert (program, group, name) == ("fasttrack", "evidence", "collect")
    return collect.make_context(name, options).params


def check(plan: Plan, called: list[dict[str, Any]], count: int) -> None:
    """The commands together measure every cell on a machine that can."""
    measured: Counter[tuple[str, str]] = Counter()
    for options in called:
        shard = Shard.parse(options["shard"])
        assert shard.count == count
        for cell in shard.of(plan):
            assert hardware_of(cell.cell()) in {ANYWHERE, options["hardware"]}
            measured[cell.kind.value, cell.cell().key] += 1
    assert measured == Counter((c.kind.value, c.cell().key) for c in plan.cells)
    assert len({options["out"] for options in called}) == len(called)
    assert {options["plan_file"] for options in called} == {Path(ODD)}


@pytest.mark.parametrize(("count", "wanted"), [(None, 3), (3, 3), (8, 8)])
def test_the_github_snippet_is_one_job_with_a_matrix_of_shards(
    plan: Plan, count: int | None, wanted: int
) -> None:
    (job,) = yaml.safe_load(github_snippet(plan, ODD, count)).values()
    checkout, step = job["steps"]
    assert checkout["with"]["ref"] == plan.commit
    called = []
    for row in job["strategy"]["matrix"]["include"]:
        line = step["run"]
        for name, value in row.items():
            line = line.replace(f"${{{{ matrix.{name} }}}}", str(value))
        called.append(understood(line))
        host = "ubuntu-latest" if row["hardware"] == "cpu" else ["self-hosted", row["hardware"]]
        assert row["runner"] == host
    check(plan, called, wanted)


def test_the_github_snippet_checks_out_as_the_proposed_workflow_does(plan: Plan) -> None:
    (job,) = yaml.safe_load(github_snippet(plan, ODD, None)).values()
    workflow = yaml.safe_load(files()[".github/workflows/fasttrack.yml"])
    assert job["steps"][0]["uses"] == workflow["jobs"]["check"]["steps"][0]["uses"]
    assert job["permissions"] == workflow["permissions"] == {"contents": "read"}


def test_the_github_snippet_says_what_the_runner_needs(plan: Plan) -> None:
    said = [line for line in github_snippet(plan, ODD, None).splitlines() if line[:1] == "#"]
    assert said[-1] == "# The runner must have Python, fasttrack, pytest and what the tests import."


def test_the_buildkite_snippet_has_one_step_per_shard(plan: Plan) -> None:
    steps = yaml.safe_load(buildkite_snippet(plan, ODD, 6))["steps"]
    called = []
    for step in steps:
        assert "$" not in step["command"].replace("$$", "")
        called.append(understood(step["command"].replace("$$", "$")))
        assert step["agents"] == {"hardware": called[-1]["hardware"]}
        assert step["artifact_paths"] == [f"{called[-1]['out']}/**/*"]
    check(plan, called, 6)


def stub(where: Path, name: str) -> None:
    """A program that writes its arguments down."""
    program = where / name
    program.write_text(f'#!/bin/bash\nprintf "%q " {name} "$@" >> calls\necho >> calls\n', "ascii")
    program.chmod(0o755)


def test_the_slurm_script_submits_itself_and_each_task_measures_its_shard(
    plan: Plan, tmp_path: Path
) -> None:
    script = tmp_path / "measure it.sh"
    script.write_text(slurm_script(plan, ODD, 5), "utf-8")
    subprocess.run(["bash", "-n", script], check=True)
    for name in ("sbatch", "fasttrack"):
        stub(tmp_path, name)
    environment = {"PATH": f"{tmp_path}:{os.defpath}"}

    def ran(arguments: list[str], **more: str) -> list[list[str]]:
        calls = tmp_path / "calls"
        calls.unlink(missing_ok=True)
        subprocess.run(
            ["bash", script.name, *arguments], cwd=tmp_path, env=environment | more, check=True
        )
        lines = calls.read_text("utf-8").splitlines()
        return [shlex.split(line.replace("$'", "'")) for line in lines]

    called = []
    for submitted in ran(["--gpus=8", "--partition=big"]):
        _, array, constraint, gpus, partition, name, hardware = submitted
        assert (gpus, partition, name) == ("--gpus=8", "--partition=big", script.name)
        assert constraint == f"--constraint={hardware}"
        for number in array.removeprefix("--array=").split(","):
            (call,) = ran([hardware], SLURM_ARRAY_TASK_ID=number)
            called.append(understood(shlex.join(call)))
    check(plan, called, 5)


Snippet = Callable[[Plan, str, int | None], str]


@pytest.mark.parametrize("snippet", [github_snippet, buildkite_snippet, slurm_script])
def test_fewer_shards_than_kinds_of_machine_are_refused(plan: Plan, snippet: Snippet) -> None:
    with pytest.raises(InputError, match="at least 3"):
        snippet(plan, ODD, 2)


@pytest.mark.parametrize("snippet", [github_snippet, buildkite_snippet, slurm_script])
def test_there_are_no_jobs_for_a_plan_without_cells(tmp_path: Path, snippet: Snippet) -> None:
    commit(tmp_path, engine(region(tier="declared")))
    with pytest.raises(InputError, match="no cells"):
        snippet(planned(tmp_path).plan, ODD, None)


def test_without_a_processor_in_the_vocabulary_any_machine_is_one_with_a_gpu(
    tmp_path: Path,
) -> None:
    commit(tmp_path, engine(region(tier="compiled")))
    (job,) = jobs(planned(tmp_path).plan, None)
    assert job.hardware == "b200"


def test_empty_shards_have_no_job(tmp_path: Path) -> None:
    commit(tmp_path, engine(region(tier="served")))
    choice = Choice(kinds=frozenset({Kind.PERFORMANCE}))
    assert [str(job.shard) for job in jobs(planned(tmp_path, choice).plan, 9)] == ["1/9"]


def test_the_text_counts_cells_by_unit_and_kind_and_gives_the_next_command(tmp_path: Path) -> None:
    commit(tmp_path, engine(region(tier="stress-tested")))
    found = planned(tmp_path, covered=lambda cell, _: cell.kind is Kind.STRESS)
    lines = plan_text(found, "plan.json").splitlines()
    head, *rows = [line.split() for line in lines[2 : lines.index("", 2)]]
    assert head == ["unit", "kind", "missing", "covered", "inputs", "tests"]
    missing = Counter((cell.unit, cell.kind.value) for cell in found.plan.cells)
    wanted = {(unit, kind): (str(n), "0") for (unit, kind), n in missing.items()}
    wanted |= {(unit, kind.value): ("0", str(n)) for (unit, kind), n in found.covered.items()}
    assert {(row[0], row[1]): (row[2], row[3]) for row in rows} == wanted
    digests = {u.unit: [u.digest[:12], u.tests_digest[:12]] for u in found.plan.units}
    assert all(row[4:] == digests[row[0]] for row in rows)
    assert found.plan.id in lines[0]
    assert max(map(len, lines)) <= 100
    for line in (line for line in lines if line.startswith("next: ")):
        assert understood(line.removeprefix("next: "))["plan_file"] == Path("plan.json")


def test_the_text_says_how_to_go_on_when_nothing_is_missing_or_kept(tmp_path: Path) -> None:
    commit(tmp_path, engine(region(tier="declared")))
    empty = planned(tmp_path)
    assert "--tier TIER" in plan_text(empty, None)
    full = planned(tmp_path, Choice(tier=Tier.COMPILED))
    assert "--out plan.json" in plan_text(full, None)
    done = Planned(empty.plan, Counter({("core", Kind.STRESS): 3}))
    assert "Nothing is missing." in plan_text(done, None)
    assert "--tier" not in plan_text(done, None)


def test_the_json_is_the_plan(plan: Plan) -> None:
    assert plan_json(plan).encode("ascii") == plan.to_bytes()

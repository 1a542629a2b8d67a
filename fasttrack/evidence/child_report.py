# SPDX-License-Identifier: Apache-2.0
"""What passes between the collector and the child that measures one cell: a job, and a report.

Both are JSON on inherited pipes, so that a child is told neither where the bundle lies nor what
other cells there are. The collector believes nothing of a report but what a child can know: its own
results. It adds digests, machine and times itself.
"""

from typing import Annotated, Any

from pydantic import Field

from fasttrack.evidence.predicates.common import (
    CellFacts,
    Execution,
    Gate,
    RandomId,
    Record,
    Seed,
    TestResults,
    Tolerance,
    Word,
)
from fasttrack.evidence.predicates.refusal_v1 import Reason
from fasttrack.evidence.predicates.stress_v1 import Setting
from fasttrack.manifest.fields import FilePath

MAX_REPORT_BYTES = 8 << 20
"""Of a report; a larger one is none."""
MAX_OPENED = 16384
"""Files that a report may name."""


class Build(Record):
    """Machine code to make, which somebody else audits."""

    module: FilePath
    """The module that makes it."""
    variant: dict[str, Any]
    """The row of the variant table."""


class Built(Record):
    """Machine code that was made."""

    code: Annotated[str, Field(max_length=MAX_REPORT_BYTES)]
    """Its bytes, in Base64."""
    contracts: tuple[Annotated[str, Field(max_length=1 << 20)], ...] = Field(max_length=256)
    """Contracts that the module holds, as JSON."""


class Job(Record):
    """One cell to measure."""

    nonce: RandomId
    """Repeated by the report, so that no other output is taken for one."""
    cell: CellFacts
    """The cell."""
    seeds: tuple[Seed, ...] = Field(max_length=1024)
    """Seeds that the plan chose."""
    build: Build | None = None
    """What to make, instead of running tests."""


class Answer(Record):
    """What the gate said to a refusal cell."""

    refused: bool
    """Whether it refused."""
    reasons: tuple[Reason, ...] = Field(max_length=256)
    """Every reason."""


class ChildReport(Record):
    """What a child saw itself."""

    nonce: RandomId
    """The job's."""
    results: TestResults
    """Tests by outcome."""
    took_cell: bool
    """Whether a test that passed had asked for the cell."""
    seeds: tuple[Seed, ...] = Field(max_length=1024)
    """Seeds that tests asked for."""
    tolerances: tuple[Tolerance, ...] = Field(max_length=256)
    """Tolerances that tests compared with."""
    execution: Execution
    """What ran."""
    gates: tuple[Gate, ...] = Field(max_length=64)
    """Gates of the validation harness."""
    settings: tuple[Setting, ...] = Field(max_length=256)
    """Delays that were tried."""
    profile: Annotated[str, Field(max_length=16)]
    """Stress profile; empty where none was run."""
    answer: Answer | None
    """The gate's answer; None where it was not asked."""
    built: Built | None = None
    """What was made; None where nothing was to be."""
    imported: tuple[FilePath, ...] = Field(max_length=MAX_OPENED)
    """Repository files that were imported."""
    opened: tuple[FilePath, ...] = Field(max_length=MAX_OPENED)
    """Other repository files that were opened for reading."""
    replaced: tuple[FilePath, ...] = Field(max_length=MAX_OPENED)
    """Repository files of modules in whose place other bytes were imported from elsewhere."""
    python: Word
    """Version of the interpreter."""
    packages: dict[Word, Word] = Field(max_length=4096)
    """Installed package to version."""

# SPDX-License-Identifier: Apache-2.0
"""What every predicate of ours records: the cell, the run, the machine, the tools, the inputs.

The runner measured all of it itself, on the machine that did the work. No user or host names, no
absolute paths, no secrets.
"""

from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from fasttrack.manifest.cells import Cell, cell
from fasttrack.manifest.fields import Count, CountOrZero, FilePath, Identifier, Number, Positive
from fasttrack.vocabulary import Kind

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
"""SHA-256, lower-case hexadecimal."""
RandomId = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
"""128 random bits, lower-case hexadecimal."""
CommitId = Annotated[str, Field(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})$")]
"""A git commit."""
NodeId = Annotated[str, Field(min_length=1, max_length=1024)]
"""A test as pytest names it, parameters included."""
Word = Annotated[str, Field(min_length=1, max_length=200)]
"""A short name or version as a tool prints it."""
Seed = Annotated[int, Field(ge=0, le=2**63 - 1)]
"""A seed of a random generator."""
Axis = Annotated[str, Field(min_length=1, max_length=64)]
Isolation = Literal["process", "harness"]
"""How far measured code was kept from its result; see `RunFacts`."""
MAX_NODES = 4096
"""Tests of one cell."""
MAX_APART = 1024
"""Files that may differ from the target branch's beside what digests hold."""


class Record(BaseModel):
    """A frozen piece of a predicate, read without coercion; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


def without_unsaid(written: dict[str, Any], *names: str) -> dict[str, Any]:
    """What a record writes, without fields that came after its first version and say nothing.

    So statements that were made before have the bytes that they had.
    """
    return {name: said for name, said in written.items() if said is not None or name not in names}


class CellFacts(Record):
    """The cell that was shown: its axes are what a statement binds to."""

    kind: Kind
    """Kind of evidence."""
    region: Annotated[str, Field(max_length=64)]
    """Region that asked for it; any other with the same key is covered too."""
    values: dict[Axis, Annotated[str, Field(max_length=200)] | CountOrZero] = Field(
        min_length=1, max_length=64
    )
    """Axis to value."""

    def cell(self) -> Cell:
        """The cell as the scope lists it."""
        return cell(self.kind, self.region, self.values)


class RunFacts(Record):
    """Which plan was run, when, and how far the measured code was kept from the result."""

    plan: RandomId
    """Id of the plan."""
    run: RandomId
    """Id of this collection; one id stands for one content."""
    commit: CommitId
    """The commit that the plan was made at."""
    started: datetime
    """UTC, whole seconds."""
    finished: datetime
    """UTC, whole seconds."""
    isolation: Isolation
    """`process`: a child of its own wrote the results. `harness`: the measured code ran in another
    process than the one that judged its raw output, as behind an engine's endpoint."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        for moment in (self.started, self.finished):
            if moment.utcoffset() is None or moment.utcoffset():
                raise ValueError(f"{moment.isoformat()} is not in UTC")
        if self.finished < self.started:
            raise ValueError("finished before it started")
        return self


class Clocks(Record):
    """Clock rates while the cell ran, in MHz."""

    sm: CountOrZero
    """Of the multiprocessors."""
    memory: CountOrZero
    """Of the memory."""


class Machine(Record):
    """The machine, as its driver or kernel describes it."""

    hardware: Identifier
    """Hardware id of the policy that the runner speaks for."""
    device: Word
    """Product name of the GPU, or of the processor."""
    arch: Identifier
    """`sm_90a`, or `x86_64`."""
    count: Count
    """Devices that took part."""
    memory_bytes: CountOrZero
    """Memory of one of them."""
    mig: bool = False
    """Whether it is a slice of a GPU."""
    driver: Word | None = None
    """Version of the GPU's driver."""
    cuda: Word | None = None
    """Version of CUDA that the driver offers."""
    clocks_mhz: Clocks | None = None
    """Absent where nobody can read them."""
    interconnect: Identifier = "none"
    """Link between the devices."""


class Toolchain(Record):
    """Versions in the process that did the work."""

    python: Word
    """Of the interpreter."""
    packages: dict[Identifier, Word] = Field(default_factory=dict, max_length=64)
    """Package to version: those that the policy names, where installed."""
    variables: dict[Annotated[str, Field(pattern=r"^CU(TE_DSL|DA)_[A-Z0-9_]{1,60}$")], Word] = (
        Field(default_factory=dict, max_length=32)
    )
    """Environment variables that change what is built, from the allow-list only."""


class BoundaryFile(Record):
    """A file that no digest holds, as a run had it."""

    path: FilePath
    """Repository path."""
    sha256: Sha256
    """Of its raw bytes."""


class ApartFile(Record):
    """A file that no digest holds, where a run had it otherwise than the target branch did."""

    path: FilePath
    """Repository path."""
    sha256: Sha256 | None
    """Of its raw bytes; of a link or a submodule, of its mode, a blank and its object id; None
    where there was no file."""


class Inputs(Record):
    """What the evidence depends on; see `fasttrack.evidence.inputs`."""

    unit: Identifier
    """Unit, or `path` for the whole."""
    digest: Sha256
    """`files/v1` of the unit's files."""
    tests: Sha256
    """`judging/v1` of the tests, their `conftest.py` chain, harness and oracle, with the roots and
    the test files that run."""
    boundary: tuple[BoundaryFile, ...] = Field(default=(), max_length=4096)
    """What its files and its tests import directly from elsewhere, outside the roots; as collected,
    also what else outside them the run was seen to import, or to read of the configuration."""
    undeclared: tuple[FilePath, ...] = Field(default=(), max_length=4096)
    """Repository files that were loaded or opened and are neither declared nor boundary; any makes
    the statement incomplete."""
    cubins: tuple[Sha256, ...] = Field(default=(), max_length=1024)
    """Machine code that was launched."""
    target: CommitId | None = None
    """The newest of the target branch's own commits that the plan's commit descends from; added
    when it is signed, and without it a statement covers nothing."""
    apart: tuple[ApartFile, ...] = Field(default=(), max_length=MAX_APART)
    """Every file outside the roots, and in no digest, that could matter and was otherwise than at
    `target`."""

    @model_validator(mode="after")
    def _apart_from_something(self) -> Self:
        if self.apart and self.target is None:
            raise ValueError("`apart` without `target`")
        return self


class TestResults(Record):
    """Tests by outcome; whatever is not in `passed` shows nothing."""

    __test__ = False  # not a test of pytest's

    passed: tuple[NodeId, ...] = Field(default=(), max_length=MAX_NODES)
    """Ran to the end without a failure."""
    failed: tuple[NodeId, ...] = Field(default=(), max_length=MAX_NODES)
    """Failed, or could not be set up."""
    skipped: tuple[NodeId, ...] = Field(default=(), max_length=MAX_NODES)
    """Skipped: missing, not passed."""
    xfailed: tuple[NodeId, ...] = Field(default=(), max_length=MAX_NODES)
    """Expected to fail, whether they did or not."""
    deselected: tuple[NodeId, ...] = Field(default=(), max_length=MAX_NODES)
    """Collected and not run."""

    def problems(self) -> list[str]:
        """Why these results show nothing; empty when they do."""
        if self.failed:
            return [f"{len(self.failed)} tests failed, {self.failed[0]} first"]
        if not self.passed:
            return ["no test passed" + (" (all skipped)" if self.skipped else "")]
        missing = (*self.skipped, *self.xfailed, *self.deselected)
        return [f"{len(missing)} tests did not run, {missing[0]} first"] if missing else []


class Tolerance(Record):
    """A tolerance that a test compared with."""

    name: Word
    """What was compared."""
    dtype: Word
    """Number format of the compared values."""
    atol: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    """Absolute."""
    rtol: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    """Relative."""
    reason: Word
    """Where the bound comes from."""


class KernelLaunch(Record):
    """A kernel that was seen to run."""

    name: Word
    """Its symbol, or the provider's name where the reference stands in."""
    launches: Count
    """How often."""
    cubin: Sha256 | None = None
    """Digest of the machine code; None for code that was not built ahead."""
    unit: Identifier | None = None
    """Unit that it is a kernel of, where that is not the statement's."""
    variant: Identifier | None = None
    """Row of the unit's variant table; None for a unit without a table."""

    @model_serializer(mode="wrap")
    def _as_written(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return without_unsaid(write(self), "unit", "variant")


class Execution(Record):
    """Proof that the path under test ran."""

    launches: tuple[KernelLaunch, ...] = Field(default=(), max_length=1024)
    """What ran."""
    fallbacks: CountOrZero
    """Steps that something else took instead; any voids the statement."""

    def problems(self) -> list[str]:
        """Why it is no proof; empty when it is."""
        if self.fallbacks:
            return [f"{self.fallbacks} steps fell back"]
        return [] if self.launches else ["nothing of the path was seen to run"]


class Gate(Record):
    """A check of the validation harness, and what it is known to catch."""

    name: Identifier
    """Its name."""
    passed: bool
    """Whether the candidate passed."""
    controls: CountOrZero
    """Negative controls that it was given: candidates that are wrong on purpose."""
    killed: CountOrZero
    """How many of them it caught."""

    def problems(self) -> list[str]:
        """Why its pass shows nothing; empty when it does."""
        if not self.passed:
            return [f"gate {self.name} did not pass"]
        missed = self.controls - self.killed
        if missed < 0:
            return [f"gate {self.name} caught more negative controls than it was given"]
        return [f"gate {self.name} let {missed} negative controls pass"] if missed else []


class Spread(Record):
    """Repeated measurements, in the unit that the field's name says."""

    median: Positive
    """The middle."""
    low: Positive
    """10th percentile."""
    high: Positive
    """90th percentile."""
    samples: Count
    """How many."""

    def problems(self) -> list[str]:
        """Contradictions; empty when there are none."""
        if self.low <= self.median <= self.high:
            return []
        return [f"percentiles {self.low:g}, {self.median:g}, {self.high:g} are not in order"]


class Interval(Record):
    """A confidence interval."""

    low: Number
    """Lower end."""
    high: Number
    """Upper end."""
    confidence: Annotated[float, Field(gt=0.5, lt=1)]
    """Such as 0.95."""

    def problems(self) -> list[str]:
        """Contradictions; empty when there are none."""
        return [] if self.low <= self.high else [f"interval {self.low:g} to {self.high:g}"]


class Facts(Record):
    """Head of every predicate."""

    JUDGED_APART: ClassVar[bool] = False
    """Whether only a run with `isolation: harness` shows something: what `stress-tested` and the
    tiers above ask for, and no lower one."""

    cell: CellFacts
    """What was shown."""
    run: RunFacts
    """Plan, time, isolation."""
    machine: Machine
    """Where."""
    toolchain: Toolchain
    """With which versions."""
    inputs: Inputs
    """Of which bytes."""

    def forgeable(self) -> list[str]:
        """Why nobody need believe it: it needs a judge apart, and had none; else empty."""
        if not self.JUDGED_APART or self.run.isolation == "harness":
            return []
        return ["the measured process could write its own result"]

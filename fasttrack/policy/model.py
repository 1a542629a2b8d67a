# SPDX-License-Identifier: Apache-2.0
"""The policy file, field by field.

The policy decides and a manifest can only be stricter. It is read from the tip of the target
branch, so a change can neither weaken the rule that judges it nor pick an old one.
"""

from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from fasttrack.finding import Level
from fasttrack.globs import check_pattern
from fasttrack.manifest.admission import DEFAULT_ADMIT_TIER
from fasttrack.manifest.fields import FirstFormat
from fasttrack.policy.fields import Count, Days, Identifier, Record, RuleId
from fasttrack.policy.trust import Trust
from fasttrack.vocabulary import Kind, Tier


def _checked_pattern(pattern: str) -> str:
    reason = check_pattern(pattern)
    if reason is not None:
        raise ValueError(reason)
    return pattern


class Mode(StrEnum):
    """How far the bot goes in this repository."""

    OBSERVE = "observe"
    COMMENT = "comment"
    GATE = "gate"
    MERGE = "merge"


class PathClass(StrEnum):
    """What a path is for; a path that no pattern names is `shared`."""

    MODEL = "model"
    REFERENCE = "reference"
    TESTS = "tests"
    MANIFESTS = "manifests"
    EVIDENCE = "evidence"
    DOCS = "docs"
    SHARED = "shared"
    CI = "ci"
    POLICY = "policy"
    GENERATED = "generated"


class ClassPatterns(Record):
    """Patterns of one path class; the first entry that matches a path gives its class."""

    path_class: PathClass = Field(alias="class")
    """The class that a matching path gets."""
    match: tuple[str, ...] = Field(min_length=1)
    """Patterns: `*` and `?` inside a segment, `**` for any number of segments."""

    @field_validator("match")
    @classmethod
    def _patterns(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(_checked_pattern(p) for p in value)


class Roots(Record):
    """Where a manifest may put its code."""

    allow: tuple[str, ...] = Field(min_length=1)
    """Patterns that every path under a manifest's roots must match."""

    @field_validator("allow")
    @classmethod
    def _patterns(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(_checked_pattern(p) for p in value)


class WiringAllowance(Record):
    """One shared file that a manifest may touch, and how much of it."""

    path: str = Field(min_length=1)
    """Repository path of the shared file."""
    symbol: str = Field(min_length=1)
    """Dotted name of the function, class or assignment whose lines may change."""
    max_lines: Count
    """Added plus removed lines that one change may have there."""


class Budgets(Record):
    """Upper bounds on one change; past one, an ordinary review must read it."""

    files: Count
    """Changed paths, evidence files not counted."""
    added_lines: Count
    """Added lines over all text files, evidence files not counted."""
    file_bytes: Count
    """Size of the largest added or modified file, in bytes."""
    wiring_lines: Count
    """Added plus removed lines over all wired files."""
    new_dependencies: Annotated[int, Field(ge=0, le=10**9)]
    """Third-party packages imported in the roots that the target branch did not import there."""
    points_per_region: Count = 400
    """Witness points that one region may ask for."""


class Floors(Record):
    """Least amounts of evidence; a manifest may ask for more, never for less."""

    kernel_seeds: Count = 3
    """Independent input seeds per kernel-test cell."""
    stress_iterations: Count = 200
    """Iterations per stress cell and delay setting."""
    stress_profile: Literal["smoke", "evidence", "soak"] = "evidence"
    """Least stress profile that a stress statement must have run."""
    eval_samples: Count = 500
    """Samples per model evaluation task."""
    eval_drop_max: Annotated[float, Field(ge=0, le=1)] = 0.01
    """Largest score drop against `auto` that the confidence interval may still contain."""


class Bandwidth(Record):
    """Memory bandwidth of one GPU, in TB/s."""

    peak: Annotated[float, Field(gt=0, lt=1000)]
    """Data sheet: faster is impossible."""
    sustained: Annotated[float, Field(gt=0, lt=1000)]
    """Measured copy: floors and percentages use it."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.sustained > self.peak:
            raise ValueError(f"sustained {self.sustained} TB/s exceeds peak {self.peak} TB/s")
        return self


class Hardware(Record):
    """One entry of the hardware vocabulary."""

    gpu: str = Field(min_length=1)
    """Product name as the driver reports it, or the processor for CPU entries."""
    arch: Identifier
    """Target architecture of the compiled code, such as `sm_103a`, or `x86_64`."""
    memory_gb: Annotated[int, Field(ge=1, le=100_000)]
    """Memory of one device, in 10^9 bytes."""
    interconnect: Identifier
    """Link between the devices of one domain, such as `nvlink`, or `none`."""
    domain_gpus: Count
    """Devices that share one interconnect domain."""
    bandwidth_tb_s: Bandwidth | None = None
    """Absent when nobody has measured it; performance claims then can not be judged."""


class Toolchain(Record):
    """Which measured versions evidence may come from."""

    exact: dict[str, str] = Field(default_factory=dict)
    """Package to the one version that binds."""
    ranges: dict[str, str] = Field(default_factory=dict)
    """Package, `driver` or `cuda` to a version specifier such as `>=2.11`."""


class Approvals(Record):
    """Who may approve, and how many it takes."""

    users: tuple[str, ...] = ()
    """User names."""
    teams: tuple[str, ...] = ()
    """Teams as `organisation/team`."""
    codeowners: bool = True
    """Owners of the touched roots count as entitled."""
    per_tier: dict[Tier, Count] = Field(default_factory=dict)
    """Approvals that a change at this tier needs; 1 where absent."""
    policy_changes: Annotated[int, Field(ge=2, le=100)] = 2
    """Approvals that a change of policy, keys or code owners needs."""


class LeaseCaps(Record):
    """How long a decode path may stay without being renewed."""

    max_days: Days
    """Longest lease."""


class Policy(Record):
    """The whole policy file."""

    policy: FirstFormat
    """Format version."""
    version: Count
    """Version of the content; never goes down."""
    mode: Mode = Mode.OBSERVE
    """How far the bot goes."""
    paths: tuple[ClassPatterns, ...] = Field(min_length=1)
    """Path classes, first match wins; unknown paths are `shared`."""
    roots: Roots
    """Where manifests may put code."""
    wiring: tuple[WiringAllowance, ...] = ()
    """Shared files that manifests may wire."""
    budgets: Budgets
    """Upper bounds on one change."""
    imports: tuple[Identifier | str, ...] = ()
    """Third-party top-level modules that code in the roots may import freely."""
    bind: tuple[str, ...] = ()
    """Patterns of files outside the roots that count as a unit's own, or as its tests, where those
    import them directly: a change there makes its evidence stale at once, whatever
    `trust.boundary` says."""
    tiers: dict[Tier, tuple[Kind, ...]]
    """Evidence kinds owed per tier; every tier but `declared`, which owes nothing, is listed."""
    admit_tier: Tier = DEFAULT_ADMIT_TIER
    """Lowest effective tier that the runtime admits."""
    floors: Floors = Field(default_factory=Floors)
    """Least amounts of evidence."""
    hardware: dict[Identifier, Hardware] = Field(min_length=1)
    """Hardware vocabulary of all manifests."""
    toolchain: Toolchain = Field(default_factory=Toolchain)
    """Acceptable measured versions."""
    trust: Trust = Field(default_factory=Trust)
    """Whose evidence counts."""
    approvals: Approvals = Field(default_factory=Approvals)
    """Who may approve."""
    lease: LeaseCaps
    """Lease caps."""
    rules: dict[RuleId, Level | Literal["off"]] = Field(default_factory=dict)
    """Levels that differ from a rule's default."""
    new_paths: Literal["together", "split"] = "together"
    """Whether a manifest and its code may arrive in one change."""
    decision_days: Days = 14
    """Days between green gates and a recorded timeout."""

    @field_validator("bind")
    @classmethod
    def _patterns(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(_checked_pattern(p) for p in value)

    @field_validator("tiers")
    @classmethod
    def _tiers_grow(cls, value: dict[Tier, tuple[Kind, ...]]) -> dict[Tier, tuple[Kind, ...]]:
        previous: frozenset[Kind] = frozenset()
        if Tier.DECLARED in value:
            raise ValueError("tier 'declared' owes nothing and is never admitted; leave it out")
        for tier in list(Tier)[1:]:
            if tier not in value:
                raise ValueError(f"tier {tier.value!r} is missing; list the kinds that it owes")
            kinds = frozenset(value[tier])
            if lost := sorted(previous - kinds):
                missing = ", ".join(lost)
                raise ValueError(f"tier {tier.value!r} owes less than the one below: no {missing}")
            previous = kinds
        return value

# SPDX-License-Identifier: Apache-2.0
"""What a scope manifest holds, field by field.

The models check each field alone; what fields say about each other is in `consistency`. Widths
and counts of rows: one step of a request has 1 + `draft_tokens` rows, so a step with `requests`
requests has rows = requests x (1 + draft_tokens).
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from fasttrack.manifest.fields import (
    Count,
    CountOrZero,
    Day,
    FilePath,
    FirstFormat,
    Glob,
    Handle,
    Identifier,
    Listed,
    Number,
    Path,
    Positive,
    Symbol,
    TestId,
    Text,
    Thousandths,
    spelled,
)
from fasttrack.manifest.words import (
    Acceptance,
    ClaimStatus,
    Dtype,
    GraphMode,
    Metric,
    Ranks,
    Status,
    UnitAxis,
)
from fasttrack.vocabulary import Tier

PATH_UNIT = "path"
"""The unit that model-level evidence speaks of: all roots together. No unit may take its id."""
GATE_UNIT = "gate-files"
"""The unit that refusal evidence speaks of: the gate's files. No unit may take its id either."""

AUDIT_WAIVER = "sync-audit"
"""What a waiver of machine code whose audit is unproven names in place of a rule."""

Dtypes = Listed[Dtype]
Parallel = Listed[Annotated[int, Field(ge=1, le=4096)]]
Version = Annotated[str, Field(pattern=r"^[0-9][A-Za-z0-9.+!_-]{0,63}$")]
Package = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]
Rate = Annotated[Thousandths, Field(le=1)]
# Not `\w`: with the letters of all scripts it takes 60 ms to prepare, each time a program starts.
_MODEL_WORD = "[A-Za-z0-9][A-Za-z0-9_.-]{0,95}"
Arch = Annotated[str, Field(pattern=r"^sm_[0-9]{2,3}[af]?$")]


class Record(BaseModel):
    """A frozen, strict piece of a manifest; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


class Weights(Record):
    """The weights that evals speak about: exactly one of the two names."""

    revision: Annotated[str, Field(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?$")] | None = None
    """Commit of the model repository; a branch or tag would move."""
    digest: Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")] | None = None
    """SHA-256 over the weights, for models that no repository serves."""


class State(Record):
    """Whether the path may run."""

    status: Status
    """`active`, `suspended` (may come back) or `revoked`."""
    since: Day
    """UTC day of the last change of status."""
    reason: Text
    """Why it is so; operators read it when the path refuses to start."""


class Wiring(Record):
    """One place in a shared file that the path may touch."""

    path: FilePath
    """A shared file, outside the roots."""
    symbol: Symbol
    """Dotted name of the function or class whose lines may change."""
    max_lines: Annotated[int, Field(ge=1, le=1000)]
    """Lines that may differ there, added and removed together."""


class Switch(Record):
    """The option that turns the path on; off is the default and the fallback."""

    option: Identifier
    """Name of the option."""
    value: Identifier
    """Value that selects this path."""
    default: Identifier
    """Value without any configuration; never `value`."""
    fallback: Identifier
    """Value that takes every step outside the scope; always `default`."""


class Code(Record):
    """The files that the path owns and the shared lines that it touches."""

    roots: Listed[Path]
    """Owned directories (ending in `/`) and files; no root lies inside another."""
    gate: Listed[FilePath]
    """Files inside the roots that decide what is admitted."""
    wiring: Listed[Wiring] = ()
    """Shared places; absent when the path is reached through a plug-in alone."""
    switch: Switch
    """How it is turned on and off."""


class Unit(Record):
    """A piece that evidence speaks about."""

    id: Identifier
    """Unique; never `path`, which stands for all roots, nor `gate-files`, for those of the gate."""
    files: Listed[Glob]
    """Its files, inside the roots; every root file belongs to at least one unit."""
    data: Listed[Glob] = ()
    """Files that it reads at run time, such as variant tables."""
    tests: Listed[Glob]
    """Its tests; a change to them voids its evidence."""
    axes: Listed[UnitAxis]
    """Scope axes that change what it does; hardware always does."""
    switch_points: Listed[Annotated[int, Field(ge=2, le=1 << 20)]] = ()
    """Rows from which another variant takes over, as its variant table says."""
    archs: Listed[Arch] = ()
    """GPU architectures that it is built for; absent for a unit without kernels."""
    variants: FilePath | None = None
    """Its variant table; one of its data files."""


class Requests(Record):
    """Decode requests in one step, both ends included."""

    min: Count
    """Fewest requests."""
    max: Count
    """Most requests; `rows_max` may cut earlier."""


class RegionDtypes(Record):
    """Number formats that a region admits."""

    weights: Dtypes
    """Checkpoint schemes, named by the format of the expert weights."""
    activations: Dtypes
    """Formats of the operands that meet the expert weights."""
    kv_cache: Dtypes
    """Formats of the attention cache."""
    conv_state: Dtypes
    """Formats of the convolution state."""
    recurrent_state: Dtypes
    """Formats of the recurrent state."""


class Region(Record):
    """A product of closed sets, cut by rows <= `rows_max`."""

    id: Identifier
    """Unique in the manifest."""
    hardware: Listed[Identifier]
    """Ids of the policy's hardware vocabulary."""
    ranks: Ranks
    """`real`, or `virtual`: one rank's shapes on one device, never a deployment."""
    tensor_parallel: Parallel
    """Ranks that share one model."""
    decode_context_parallel: Parallel
    """Ranks that share one attention cache; each divides every `tensor_parallel`."""
    requests: Requests
    """Decode requests of one step."""
    draft_tokens: Listed[Annotated[int, Field(ge=0, le=1024)]]
    """Draft tokens per request, uniform in a step; 0 is decoding without a draft."""
    rows_max: Count
    """Most rows of one step, requests x (1 + draft tokens)."""
    dtypes: RegionDtypes
    """Number formats."""
    context_max: Count
    """Longest context in tokens; contexts start at 1."""
    graph_modes: Listed[GraphMode]
    """How steps may be launched."""
    tier: Tier
    """What has been shown; decides which evidence is owed."""


class Refusal(Record):
    """A feature that startup must refuse."""

    feature: Identifier
    """Name of the feature or setting."""
    probe: Identifier
    """Id of the probe that asks the gate about it."""


class Eval(Record):
    """A bar for one evaluation task, at least as high as the policy's."""

    task: Identifier
    """Name of the task."""
    samples_min: Count
    """Fewest samples that count."""
    drop_max: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
    """Largest drop against the fallback, as a fraction of 1."""


class Evidence(Record):
    """Evidence asked for beyond the policy."""

    tests: Listed[TestId] = ()
    """Test ids that must have passed."""
    evals: Listed[Eval] = ()
    """Evaluation tasks with their bars."""
    bars: dict[Identifier, Number] = Field(default_factory=dict)
    """Bars above the policy's floors, by the floor's name; higher is stricter."""


class Workload(Record):
    """The conditions of a claim; which ones are needed depends on its metric."""

    rows: Count | None = None
    """Rows of the step."""
    context: Count | None = None
    """Tokens already in the cache, per request."""
    isl: Count | None = None
    """Input tokens per request."""
    osl: Count | None = None
    """Output tokens per request."""
    batch: Count | None = None
    """Concurrent requests."""
    draft_tokens: CountOrZero | None = None
    """Draft tokens per request; 0 is no speculation."""
    acceptance: Acceptance
    """Where acceptance comes from; `none` without draft tokens."""
    acceptance_length: Annotated[Thousandths, Field(ge=1)] | None = None
    """Tokens that one verify window yields on average, from 1 to 1 + draft tokens."""
    acceptance_rates: Annotated[tuple[Rate, ...], Field(min_length=1, max_length=32)] | None = None
    """Instead: how often each draft token stands together with all before it."""

    def conditions(self) -> dict[str, str | int]:
        """Axis to value of a cell, for everything that is stated."""
        found = self.model_dump(mode="json", exclude_none=True)
        if self.acceptance_length is not None:
            found["acceptance_length"] = spelled(self.acceptance_length)
        if self.acceptance_rates is not None:
            found["acceptance_rates"] = ",".join(map(spelled, self.acceptance_rates))
        return found


class Side(Record):
    """One side of a comparison."""

    hardware: Identifier
    """Id of the policy's hardware vocabulary."""
    gpu_count: Count
    """GPUs that serve the model on this side."""
    backend: Identifier
    """What runs there."""


class Claim(Record):
    """A performance statement with its full conditions."""

    id: Identifier
    """Unique in the manifest."""
    metric: Metric
    """What is compared; times and latencies in the unit that the word names."""
    of: Identifier | None = None
    """The unit or layer that is timed; absent for whole-model metrics."""
    workload: Workload
    """Under which load."""
    ours: Side
    """The path's side."""
    baseline: Side
    """What it is compared with."""
    ratio: Positive
    """How many times better than the baseline; above 1 is better for every metric."""
    status: ClaimStatus
    """Read somewhere, or measured."""
    uncontrolled: bool = False
    """The sides differ in hardware or GPU count: not a comparison, gates nothing."""
    reason: Text | None = None
    """Why an uncontrolled figure is shown at all."""


class RemovalWiring(Record):
    """What to delete from one wired file."""

    path: FilePath
    """The wired file."""
    symbol: Symbol | None = None
    """Delete this whole definition."""
    lines: Listed[Annotated[str, Field(min_length=1, max_length=500)]] = ()
    """Delete the lines with exactly this text, indentation aside."""


class Removal(Record):
    """What takes the path out again."""

    paths: Listed[Path]
    """Directories and files to delete; every root lies in one of them."""
    wiring: Listed[RemovalWiring] = ()
    """Edits of the wired files; every wired file has one."""


class Lease(Record):
    """How long the path may stay, and who answers for it."""

    owner: Handle
    """Who keeps it working."""
    backup: Handle
    """Who does when the owner can not."""
    granted: Day
    """First UTC day."""
    expires: Day
    """Last UTC day; the policy caps the length."""
    removal: Removal
    """How it leaves."""


class Waiver(Record):
    """One finding that was looked at and accepted, until a day or until its code changes."""

    rule: Annotated[str, Field(pattern=rf"^(FT[1-9][0-9]{{2}}|{AUDIT_WAIVER})$")]
    """Id of the rule; `sync-audit` for machine code whose audit is unproven."""
    path: FilePath
    """File of the finding; for machine code, the variant table."""
    fingerprint: Annotated[str, Field(pattern=r"^[0-9a-f]{16,64}$")]
    """The finding's fingerprint, or the skeleton of the kernel; gone when the code changes."""
    reason: Text
    """Why it is acceptable."""
    owner: Handle
    """Who decided."""
    expires: Day
    """Last UTC day."""


class Manifest(Record):
    """The scope manifest of one decode path."""

    manifest: FirstFormat
    """Version of this format."""
    name: Identifier
    """Name of the decode path."""
    model: Annotated[str, Field(pattern=rf"^{_MODEL_WORD}/{_MODEL_WORD}$")]
    """`organisation/model`; model-level evidence counts for exactly this model."""
    weights: Weights
    """The weights that evals speak about."""
    summary: Text
    """What the path is, in a sentence or two."""
    state: State
    """Whether it may run."""
    code: Code
    """What it owns and touches."""
    units: Listed[Unit]
    """The pieces that evidence speaks about."""
    scope: Listed[Region]
    """What it claims, as a union of regions."""
    refuses: Listed[Refusal]
    """What startup must refuse."""
    evidence: Evidence = Field(default_factory=Evidence)
    """What it asks for beyond the policy."""
    toolchain: Annotated[dict[Package, Version], Field(min_length=1, max_length=32)]
    """Exact versions that the shipped variants were built with."""
    claims: Listed[Claim] = ()
    """Performance statements."""
    lease: Lease
    """How long it may stay."""
    sponsor: Handle
    """The human who answers for it."""
    assisted_by: Listed[Text] = ()
    """Tools that wrote parts of it, for disclosure."""
    waivers: Listed[Waiver] = ()
    """Accepted findings."""

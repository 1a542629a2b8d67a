# SPDX-License-Identifier: Apache-2.0
"""Statements for tests: one good one per predicate, and strategies for whatever they can say."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from fasttrack.evidence.predicates import (
    KINDS,
    PREDICATES,
    Predicate,
    stress_v1,
)
from fasttrack.evidence.predicates.common import (
    ApartFile,
    BoundaryFile,
    CellFacts,
    Clocks,
    Execution,
    Gate,
    Inputs,
    Interval,
    KernelLaunch,
    Machine,
    RunFacts,
    Spread,
    TestResults,
    Tolerance,
    Toolchain,
)
from fasttrack.evidence.predicates.sync_audit_v1 import AuditedKernel, AuditWaiver
from fasttrack.evidence.statement import Statement
from fasttrack.manifest.words import Metric
from fasttrack.vocabulary import Kind

FINISHED = datetime(2026, 11, 20, 12, 30, tzinfo=UTC)
TYPES: Mapping[Kind, str] = {kind: predicate_type for predicate_type, kind in KINDS.items()}
"""Kind to its predicate type."""


def digest(letter: str) -> str:
    """A digest that is one letter all through."""
    return letter * 64


def facts(kind: Kind, **changes: Any) -> dict[str, Any]:
    """The head of every predicate.

    Args:
        kind: of the cell.
        changes: `values` of the cell, `plan`, `run`, `finished`, `hardware`, `unit`, `digest`,
            `tests`, `isolation`.
    """
    asked = {
        "values": {"unit": "kda", "rows": 4, "hardware": "h200"},
        "plan": "1" * 32,
        "run": "2" * 32,
        "finished": FINISHED,
        "hardware": "h200",
        "unit": "kda",
        "digest": digest("a"),
        "tests": digest("b"),
        "isolation": "harness",
    } | changes
    finished = asked["finished"]
    return {
        "cell": CellFacts(kind=kind, region="r", values=asked["values"]),
        "run": RunFacts(
            plan=asked["plan"],
            run=asked["run"],
            commit="c" * 40,
            started=finished - timedelta(minutes=5),
            finished=finished,
            isolation=asked["isolation"],
        ),
        "machine": Machine(
            hardware=asked["hardware"],
            device="NVIDIA H200",
            arch="sm_90a",
            count=1,
            memory_bytes=141 * 10**9,
        ),
        "toolchain": Toolchain(python="3.11.9", packages={"torch": "2.11.0"}),
        "inputs": Inputs(unit=asked["unit"], digest=asked["digest"], tests=asked["tests"]),
    }


RESULTS = TestResults(passed=("tests/test_kda.py::test_rows[4]",))
EXECUTION = Execution(launches=(KernelLaunch(name="kda_decode", launches=3),), fallbacks=0)
GATE = Gate(name="oracle", passed=True, controls=4, killed=4)


def spread(median: float) -> Spread:
    """Ten samples around a median."""
    return Spread(median=median, low=median * 0.9, high=median * 1.1, samples=10)


GOOD: Mapping[Kind, Mapping[str, Any]] = {
    Kind.SYNC_AUDIT: {
        "cubin": digest("d"),
        "kernels": (AuditedKernel(name="kda", verdict="proved", skeleton=digest("e")),),
        "disassembler": "nvdisasm 13.0",
    },
    Kind.REFUSAL: {"refused": True, "reasons": ("rows 9 > 8",), "results": RESULTS},
    Kind.KERNEL_TEST: {
        "results": RESULTS,
        "seeds": (1, 2, 3),
        "execution": EXECUTION,
        "gates": (GATE,),
    },
    Kind.STRESS: {
        "profile": "evidence",
        "seeds": (1,),
        "settings": (
            stress_v1.Setting(delay="rank-skew", longest_us=50.0, iterations=200, wrong=0),
        ),
        "execution": EXECUTION,
        "gates": (GATE,),
    },
    Kind.MODEL_EVAL: {
        "model": "example/model",
        "weights": digest("f"),
        "task": "gsm8k",
        "samples": 500,
        "score": 0.9,
        "baseline": "auto",
        "baseline_score": 0.9,
        "drop": Interval(low=-0.01, high=0.01, confidence=0.95),
        "execution": EXECUTION,
    },
    Kind.PERFORMANCE: {
        "metric": Metric.LAYER_TIME_US,
        "ours": spread(50.0),
        "baseline": spread(100.0),
        "ratio": spread(2.0),
        "pairs": 10,
        "execution": EXECUTION,
    },
}
"""Kind to what a predicate of it says beside `facts` when it shows something."""


def good(kind: Kind, content: Mapping[str, Any] | None = None, **changes: Any) -> Statement:
    """A statement that shows something.

    Args:
        kind: of the cell.
        content: fields of the predicate that differ from `GOOD`.
        changes: what `facts` takes.
    """
    model = PREDICATES[TYPES[kind]]
    fields = facts(kind, **changes) | dict(GOOD[kind]) | dict(content or {})
    return Statement(TYPES[kind], model(**fields))


sha256s = st.text("0123456789abcdef", min_size=64, max_size=64)
ids = st.text("0123456789abcdef", min_size=32, max_size=32)
identifiers = st.from_regex(r"\A[a-z0-9][a-z0-9._-]{0,20}\Z")
words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
counts = st.integers(1, 10**6)
counts_or_zero = st.integers(0, 10**6)
positives = st.floats(1e-12, 1e12)
moments = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC)).map(
    lambda moment: moment.replace(microsecond=0)
)
file_paths = st.lists(identifiers.filter(lambda s: s[0] != "."), min_size=1, max_size=3).map(
    "/".join
)


def few(items: st.SearchStrategy[Any], least: int = 0) -> st.SearchStrategy[Any]:
    """Short tuples."""
    return st.lists(items, min_size=least, max_size=3).map(tuple)


runs = st.builds(
    lambda plan, run, commit, moments, isolation: RunFacts(
        plan=plan,
        run=run,
        commit=commit,
        started=min(moments),
        finished=max(moments),
        isolation=isolation,
    ),
    ids,
    ids,
    st.one_of(sha256s, sha256s.map(lambda s: s[:40])),
    st.tuples(moments, moments),
    st.sampled_from(["process", "harness"]),
)
machines = st.builds(
    Machine,
    hardware=identifiers,
    device=words,
    arch=identifiers,
    count=counts,
    memory_bytes=counts_or_zero,
    mig=st.booleans(),
    driver=st.none() | words,
    cuda=st.none() | words,
    clocks_mhz=st.none() | st.builds(Clocks, sm=counts_or_zero, memory=counts_or_zero),
    interconnect=identifiers,
)
toolchains = st.builds(
    Toolchain,
    python=words,
    packages=st.dictionaries(identifiers, words, max_size=3),
    variables=st.dictionaries(st.sampled_from(["CUDA_X", "CUTE_DSL_ARCH"]), words, max_size=2),
)
inputs = st.builds(
    Inputs,
    unit=identifiers,
    digest=sha256s,
    tests=sha256s,
    boundary=few(st.builds(BoundaryFile, path=file_paths, sha256=sha256s)),
    undeclared=few(file_paths),
    cubins=few(sha256s),
) | st.builds(
    Inputs,
    unit=identifiers,
    digest=sha256s,
    tests=sha256s,
    target=sha256s.map(lambda s: s[:40]),
    apart=few(st.builds(ApartFile, path=file_paths, sha256=st.none() | sha256s)),
)
results = st.builds(
    TestResults,
    **dict.fromkeys(("passed", "failed", "skipped", "xfailed", "deselected"), few(words)),
)
executions = st.builds(
    Execution,
    launches=few(
        st.builds(
            KernelLaunch,
            name=words,
            launches=counts,
            cubin=st.none() | sha256s,
            unit=st.none() | identifiers,
            variant=st.none() | identifiers,
        )
    ),
    fallbacks=counts_or_zero,
)
gates = st.builds(
    Gate, name=identifiers, passed=st.booleans(), controls=counts_or_zero, killed=counts_or_zero
)
spreads = st.builds(Spread, median=positives, low=positives, high=positives, samples=counts)
seeds = few(st.integers(0, 2**63 - 1), least=1)
tolerances = st.builds(
    Tolerance,
    name=words,
    dtype=words,
    atol=st.floats(0, 1e300),
    rtol=st.floats(0, 1e300),
    reason=words,
)
audited = st.builds(
    AuditedKernel,
    name=words,
    verdict=st.sampled_from(["proved", "violated", "unproven"]),
    skeleton=sha256s,
    waiver=st.none()
    | st.builds(
        AuditWaiver,
        skeleton=sha256s,
        reason=st.from_regex(r"\A[a-z ]{0,10}[a-z]\Z"),
        owner=identifiers.map(lambda s: "a" + s.replace(".", "").replace("_", "")),
        expires=st.dates(),
    ),
)

_CONTENT: Mapping[Kind, Mapping[str, st.SearchStrategy[Any]]] = {
    Kind.SYNC_AUDIT: {
        "cubin": sha256s,
        "kernels": few(audited, 1),
        "disassembler": words,
        "assembler": st.none() | words,
    },
    Kind.REFUSAL: {"refused": st.booleans(), "reasons": few(words), "results": results},
    Kind.KERNEL_TEST: {
        "results": results,
        "seeds": seeds,
        "tolerances": few(tolerances),
        "execution": executions,
        "gates": few(gates),
    },
    Kind.STRESS: {
        "profile": st.sampled_from(["smoke", "evidence", "soak"]),
        "seeds": seeds,
        "settings": few(
            st.builds(
                stress_v1.Setting,
                delay=identifiers,
                longest_us=st.floats(0, 1e9),
                iterations=counts,
                wrong=counts_or_zero,
            ),
            1,
        ),
        "execution": executions,
        "gates": few(gates, 1),
    },
    Kind.MODEL_EVAL: {
        "model": words,
        "weights": sha256s,
        "task": identifiers,
        "samples": counts,
        "score": st.floats(0, 1),
        "baseline": identifiers,
        "baseline_score": st.floats(0, 1),
        "drop": st.builds(
            Interval,
            low=st.floats(-1e12, 1e12),
            high=st.floats(-1e12, 1e12),
            confidence=st.floats(0.5, 1, exclude_min=True, exclude_max=True),
        ),
        "endpoint": st.none() | identifiers,
        "execution": executions,
    },
    Kind.PERFORMANCE: {
        "metric": st.sampled_from(Metric),
        "ours": spreads,
        "baseline": spreads,
        "ratio": spreads,
        "pairs": counts,
        "bytes_moved": st.none() | positives,
        "acceptance_length": st.none() | st.floats(1, 100),
        "execution": executions,
    },
}


@st.composite
def predicates(draw: st.DrawFn, kind: Kind) -> Predicate:
    """Anything that a predicate of a kind can say, whether it shows something or not."""
    values = st.dictionaries(words, st.text(max_size=9) | counts_or_zero, min_size=1, max_size=4)
    head = {
        "cell": CellFacts(kind=kind, region=draw(identifiers), values=draw(values)),
        "run": draw(runs),
        "machine": draw(machines),
        "toolchain": draw(toolchains),
        "inputs": draw(inputs),
    }
    content = {name: draw(strategy) for name, strategy in _CONTENT[kind].items()}
    return PREDICATES[TYPES[kind]](**head, **content)


@st.composite
def statements(draw: st.DrawFn, kind: Kind | None = None) -> Statement:
    """Any statement, of one kind or of all."""
    chosen = kind or draw(st.sampled_from(Kind))
    return Statement(TYPES[chosen], draw(predicates(chosen)))

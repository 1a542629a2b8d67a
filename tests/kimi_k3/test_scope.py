# SPDX-License-Identifier: Apache-2.0
"""The gate and the checker read the same manifest and answer alike."""

from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from fasttrack.manifest.admission import Question
from fasttrack.manifest.model import Manifest
from fasttrack.manifest.words import Ranks
from fasttrack.vocabulary import Tier
from fasttrack.workspace import open_workspace
from kimi_k3.decode.scope import admitting_region, packaged_manifest, refusals

ROOT = Path(__file__).resolve().parents[2]
INSIDE = Question(gpu="gb300", tp=16, dcp=1, requests=8, draft=7, context=4096)


def opened(manifest: Manifest) -> Manifest:
    """The manifest with every region at the highest tier; only `ask`'s `effective` then limits."""
    regions = tuple(r.model_copy(update={"tier": Tier.SERVED}) for r in manifest.scope)
    return manifest.model_copy(update={"scope": regions})


def test_the_gate_reads_the_manifest_that_the_checker_reads() -> None:
    assert packaged_manifest() == open_workspace(ROOT).manifest("kimi-k3-decode")


def test_nothing_is_admitted_while_every_region_is_declared() -> None:
    assert admitting_region(packaged_manifest(), INSIDE) is None
    assert "gb300-tp16: gb300: declared, never executed; admitted from stress-tested" in refusals(
        packaged_manifest(), INSIDE
    )


def test_a_claim_without_evidence_admits_nothing() -> None:
    assert admitting_region(opened(packaged_manifest()), INSIDE) is None


def test_every_reason_is_given_not_only_the_first() -> None:
    outside = replace(INSIDE, dcp=3, requests=65, draft=8, context=2**21)
    reasons = [r for r in refusals(packaged_manifest(), outside) if r.startswith("gb300-tp16: ")]
    for word in ("dcp 3", "draft 8", "65 requests", "585 rows", "2097152 tokens"):
        assert any(word in reason for reason in reasons), word


@given(
    tp=st.sampled_from([4, 8, 16]),
    dcp=st.sampled_from([1, 2, 8, 16]),
    requests=st.integers(1, 70),
    draft=st.integers(0, 9),
    context=st.sampled_from([1, 1_048_576, 1_048_577]),
)
def test_the_gate_admits_exactly_the_product_cut_by_rows(
    tp: int, dcp: int, requests: int, draft: int, context: int
) -> None:
    question = Question("gb300", tp, dcp, requests, draft, context)
    # Written from the design: DCP is 1 or TP, at most 64 rows, at most 7 draft tokens.
    inside = (
        tp in {8, 16}
        and dcp in {1, tp}
        and draft <= 7
        and requests * (1 + draft) <= 64
        and context <= 1_048_576
    )
    admits = admitting_region(opened(packaged_manifest()), question, Tier.DECLARED) is not None
    assert admits == inside


@given(requests=st.integers(1, 64), tp=st.sampled_from([8, 16]))
def test_virtual_ranks_are_never_a_deployment(requests: int, tp: int) -> None:
    question = Question("h200", tp, 1, requests, 0, 1)
    manifest = opened(packaged_manifest())
    assert any(r.ranks is Ranks.VIRTUAL and "h200" in r.hardware for r in manifest.scope)
    assert admitting_region(manifest, question, Tier.DECLARED) is None

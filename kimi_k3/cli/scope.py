# SPDX-License-Identifier: Apache-2.0
"""`kimi-k3 scope`: what the gate admits."""

import json
import sys
from collections.abc import Iterator, Sequence

import click

from fasttrack.errors import Exit
from fasttrack.manifest.admission import Question, RegionAnswer, require_known
from fasttrack.manifest.model import Manifest, Region
from fasttrack.manifest.words import Dtype, Ranks
from kimi_k3.cli.options import dcp_option, format_option
from kimi_k3.decode.packaged import packaged_policy
from kimi_k3.decode.scope import MIN_TIERS, Gate, packaged_gate

FORMAT_VERSION = 1


@click.group()
def command() -> None:
    """Ask the gate."""


@command.command()
@click.option("--gpu", metavar="ID", required=True, help="Hardware id, such as gb300 or cpu.")
@click.option("--tp", type=click.IntRange(1), required=True, help="Tensor parallelism.")
@dcp_option
@click.option("--requests", type=click.IntRange(1), required=True, help="Requests of one step.")
@click.option(
    "--draft",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Draft tokens per request.",
)
@click.option(
    "--context",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Longest context in tokens.",
)
@click.option(
    "--kv",
    type=click.Choice([dtype.value for dtype in Dtype]),
    help="Format of the KV cache; not asked about by default.",
)
@click.option("--virtual-ranks", is_flag=True, help="Ranks simulated on one device.")
@click.option(
    "--min-tier",
    type=click.Choice([tier.value for tier in MIN_TIERS]),
    help="Value of decode_min_tier, not with virtual ranks  [default: the policy's tier]",
)
@format_option
def explain(
    gpu: str,
    tp: int,
    dcp: int,
    requests: int,
    draft: int,
    context: int,
    kv: str | None,
    virtual_ranks: bool,
    min_tier: str | None,
    form: str,
) -> None:
    """Tell what each region of the scope says to a configuration, with every reason.

    Exits with 0 when one of them admits it, else with 1. A server's start asks further: for the
    features that are refused, the model, and the NVLink domain of its ranks.
    """
    require_known(gpu, packaged_policy().hardware, "--gpu")
    ranks = Ranks.VIRTUAL if virtual_ranks else Ranks.REAL
    question = Question(gpu, tp, dcp, requests, draft, context, ranks, kv_cache=kv)
    gate = packaged_gate()
    answers = gate.answers(question, min_tier=min_tier)
    notes = gate.notes(virtual_ranks=virtual_ranks, min_tier=min_tier)
    click.echo((as_json if form == "json" else as_text)(gate, answers, notes))
    if not any(answer.admits for answer in answers):
        sys.exit(Exit.REFUSED)


def as_json(gate: Gate, answers: Sequence[RegionAnswer], notes: Sequence[str]) -> str:
    """The answers as one JSON object."""
    manifest = gate.manifest
    return json.dumps(
        {
            "version": FORMAT_VERSION,
            "manifest": manifest.name,
            "state": manifest.state.status,
            "admit_tier": gate.admit_tier,
            "admitted": any(answer.admits for answer in answers),
            "notes": list(notes),
            "regions": [
                {
                    "region": answer.region,
                    "claimed": answer.claimed,
                    "effective": answer.effective,
                    "admits": answer.admits,
                    "bounds": region.model_dump(mode="json", exclude={"id", "tier"}),
                    "reasons": [*answer.outside, *answer.below],
                }
                for region, answer in zip(manifest.scope, answers, strict=True)
            ],
            "also_refused": [refusal.feature for refusal in manifest.refuses],
        },
        indent=1,
    )


def as_text(gate: Gate, answers: Sequence[RegionAnswer], notes: Sequence[str]) -> str:
    """The verdict, then each region with its bounds and reasons."""
    manifest, switch = gate.manifest, gate.manifest.code.switch
    admitting = next((answer.region for answer in answers if answer.admits), None)
    verdict = (
        f"not admitted; {switch.option}: {switch.fallback} runs there"
        if admitting is None
        else f"admitted by {admitting}"
    )
    lines = [verdict, *notes, f"{manifest.name}, {manifest.state.status.value}"]
    for region, answer in zip(manifest.scope, answers, strict=True):
        lines += _region_lines(region, answer)
    return "\n".join([*lines, _also_asked(manifest)])


def _region_lines(region: Region, answer: RegionAnswer) -> Iterator[str]:
    yield f"  {region.id}: claims {answer.claimed.value}, effective {answer.effective.value}"
    yield f"    holds {', '.join(_bounds(region))}"
    for reason in (*answer.outside, *answer.below):
        yield f"    - {reason}"


def _bounds(region: Region) -> Iterator[str]:
    yield f"gpu {_either(region.hardware)}"
    yield f"{region.ranks.value} ranks"
    yield f"tp {_either(region.tensor_parallel)}"
    yield f"dcp {_either(region.decode_context_parallel)}"
    yield f"{region.requests.min} to {region.requests.max} requests"
    yield f"draft {_either(region.draft_tokens)}"
    yield f"at most {region.rows_max} rows"
    yield f"contexts up to {region.context_max}"
    yield f"kv_cache {_either(region.dtypes.kv_cache)}"
    yield f"graph_mode {_either(region.graph_modes)}"


def _either(values: Sequence[object]) -> str:
    return "/".join(map(str, values))


def _also_asked(manifest: Manifest) -> str:
    features = ", ".join(refusal.feature for refusal in manifest.refuses)
    return (
        "a server's start also refuses another model, ranks outside one NVLink domain, and "
        f"{features}"
    )

# SPDX-License-Identifier: Apache-2.0
"""`docs/claims.md` tells the truth: each of its blocks is accepted or refused as it says."""

import re
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from fasttrack.errors import InputError
from fasttrack.evidence.claims import Outcome
from fasttrack.manifest.load import load_manifest
from fasttrack.manifest.model import Manifest
from fasttrack.policy.load import load_policy
from fasttrack.rules.manifest.claims import Claims
from fasttrack.rules.manifest.manifest_schema import ManifestSchema

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/claims.md").read_text("utf-8")
MANIFEST = (ROOT / "manifests/kimi-k3-decode.yaml").read_text("utf-8")
POLICY = load_policy((ROOT / "manifests/policy.yaml").read_bytes(), "policy.yaml")
BLOCK = re.compile(
    r"^```yaml\n(?P<yaml>(?:.*\n)*?)```\n\n"
    r"(?P<verdict>Accepted, as `reported`\.|Refused by FT\d{3}:)\n"
    r"(?P<quotes>(?:\n> .*\n)*)",
    re.MULTILINE,
)
FIGURES = {
    "spec-b1": 842 / 488,
    "earlier-run": 838 / 489,
    "agentx-p90": 403.2 / 223.7,
    "combined": 842 / 256.4,
}
PUBLISHED = {"plain-b1": 1.88, "plain-b64": 1.62, "third-party": 1.68}


@dataclass(frozen=True)
class Block:
    """A YAML block, and what the page says about it."""

    yaml: str
    refused_by: str
    quotes: tuple[str, ...]

    @property
    def claims(self) -> list[dict[str, Any]]:
        return list(yaml.safe_load(self.yaml)["claims"])


def blocks() -> list[Block]:
    found = []
    for match in BLOCK.finditer(PAGE):
        rule = re.search(r"FT\d{3}", match["verdict"])
        quotes = tuple(re.findall(r"^> (.*)$", match["quotes"], re.MULTILINE))
        found.append(Block(match["yaml"], rule[0] if rule else "", quotes))
    return found


BLOCKS = blocks()
IDS = ["+".join(claim["id"] for claim in block.claims) for block in BLOCKS]


def load(block: Block) -> Manifest:
    """This repository's manifest with the block's claims."""
    return load_manifest(f"{MANIFEST}\n{block.yaml}", "kimi-k3-decode.yaml")


def faults(manifest: Manifest) -> list[str]:
    """What FT313 says under this repository's policy."""
    case: Any = SimpleNamespace(policy=POLICY)
    tree: Any = None
    return [fault.saw for fault in Claims().faults(case, manifest, tree)]


def test_every_block_of_the_page_is_followed_by_what_becomes_of_it() -> None:
    assert len(BLOCKS) == PAGE.count("```yaml") == 9
    assert all(bool(block.quotes) == bool(block.refused_by) for block in BLOCKS)
    assert {block.refused_by for block in BLOCKS} == {"", "FT301", "FT313"}


@pytest.mark.parametrize("block", BLOCKS, ids=IDS)
def test_a_block_is_accepted_or_refused_by_the_rule_that_the_page_names(block: Block) -> None:
    if block.refused_by == ManifestSchema.id:
        with pytest.raises(InputError) as caught:
            load(block)
        said = [problem.saw for problem in caught.value.problems]
    else:
        said = faults(load(block))
        assert bool(said) == (block.refused_by == Claims.id), said
    unsaid = [quote for quote in block.quotes if not any(quote in line for line in said)]
    assert unsaid == [], said
    unquoted = [line for line in said if not any(quote in line for quote in block.quotes)]
    assert unquoted == []


def test_no_accepted_claim_calls_itself_measured() -> None:
    accepted = [claim for block in BLOCKS if not block.refused_by for claim in block.claims]
    assert {claim["status"] for claim in accepted} == {"reported"}
    assert [claim["id"] for claim in accepted] == ["spec-b1", "plain-b1", "plain-b64"]


def test_plain_and_speculative_claims_share_no_workload() -> None:
    accepted = [claim for block in BLOCKS if not block.refused_by for claim in block.claims]
    for claim in accepted:
        workload = claim["workload"]
        plain = claim["id"].startswith("plain")
        assert plain == (workload["draft_tokens"] == 0) == (workload["acceptance"] == "none")


def test_each_ratio_is_of_the_two_sides_that_the_page_names_and_of_no_others() -> None:
    ratios = {
        claim["id"]: claim["ratio"]
        for block in BLOCKS
        for claim in block.claims
        if claim["id"] != "a-range"
    }
    assert ratios.keys() == FIGURES.keys() | PUBLISHED.keys()
    for name, figure in FIGURES.items():
        assert ratios[name] == round(figure, 3), name
    assert {name: ratios[name] for name in PUBLISHED} == PUBLISHED
    mixed = (842 / 489, 838 / 488)
    assert not any(round(figure, 3) in ratios.values() for figure in mixed)


def test_the_table_of_figures_has_the_ratios_of_the_blocks() -> None:
    rows = re.findall(r"^\| `([a-z0-9-]+)` \| [^|]+ \| ([0-9.]+) \|", PAGE, re.MULTILINE)
    table = {name: float(ratio) for name, ratio in rows}
    wanted = {name: round(value, 3) for name, value in FIGURES.items() if name != "combined"}
    assert table == wanted | PUBLISHED


def test_the_table_of_outcomes_lists_every_one_in_the_order_of_the_answer() -> None:
    section = PAGE[PAGE.index("## How a claim is held") :]
    listed = re.findall(r"^\| `([a-z-]+)` \|", section, re.MULTILINE)
    assert sorted(listed) == sorted(outcome.value for outcome in Outcome)
    assert listed[-1] == Outcome.BORNE_OUT

# SPDX-License-Identifier: Apache-2.0
"""What `kimi-k3 generate` prints of its results, for people and for programs."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from kimi_k3.decode.scope import Admission

if TYPE_CHECKING:
    from kimi_k3.generate import Generated

FORMAT_VERSION = 2


def as_text(
    generated: "Generated", admission: Admission, split: tuple[int, int], origin: str
) -> str:
    """New ids, then what computed them."""
    ids = [",".join(map(str, result.tokens)) for result in generated.results]
    ranks = f"tp {split[0]}, dcp {split[1]}"
    lines = [*ids, f"providers: {', '.join(generated.providers)}; {ranks}; weights: {origin}"]
    if generated.steps:
        taken = ", ".join(f"{count} {reason}" for reason, count in generated.steps.items())
        lines.append(f"steps: {taken}")
        lines.extend(admission.lines())
    return "\n".join(lines)


def drafts(generated: "Generated") -> str:
    """How speculation went, in one line."""
    counts = generated.metrics.speculation
    if not counts.windows:
        return "drafts: none: each prompt's own step gave the only token that was asked for"
    if not counts.drafts:
        return f"drafts: in 0 of {counts.windows} windows: their last tokens stand nowhere before"
    return (
        f"drafts: {counts.accepted} of {counts.drafted} tokens accepted; "
        f"{counts.acceptance_length:.2f} tokens per window with a draft, which "
        f"{counts.drafts} of {counts.windows} windows had"
    )


def as_json(
    generated: "Generated", admission: Admission, split: tuple[int, int], origin: str
) -> str:
    """The same as one JSON object."""
    return json.dumps(
        {
            "version": FORMAT_VERSION,
            "backend": admission.backend,
            "region": admission.region.id if admission.region else None,
            "notes": list(admission.notes),
            "providers": generated.providers,
            "operators": dict(generated.operators),
            "steps": dict(generated.steps),
            "tp": split[0],
            "dcp": split[1],
            "weights": origin,
            "speculation": asdict(generated.metrics.speculation)
            | {"acceptance_length": generated.metrics.speculation.acceptance_length},
            "results": [
                {
                    "token_ids": result.tokens,
                    "finish_reason": result.reason,
                    "notes": result.notes,
                }
                for result in generated.results
            ],
        }
    )

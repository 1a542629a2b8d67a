# SPDX-License-Identifier: Apache-2.0
"""FT531: evaluations compare this model with its fallback."""

from fasttrack.finding import Level
from fasttrack.rules.evidence.told import StatementRule


class Evaluation(StatementRule):
    """Evaluations that do not answer the question."""

    id = "FT531"
    slug = "evaluation"
    title = "evaluations compare this model with its fallback"
    level = Level.NOTE
    refuses = (
        "A brought trusted evaluation of another model, other weights or another baseline, with "
        "too few samples, or whose interval holds a larger drop than the policy allows."
    )
    why = "It covers nothing."
    blind = "Whether the task tells good models from bad ones."
    fix = "evaluate this model and these weights against the fallback, with enough samples"
    want = "an evaluation within the policy's floors"

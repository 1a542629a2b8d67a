# SPDX-License-Identifier: Apache-2.0
"""Claims: a model with the path scored as well as the same model with the fallback.

Does not claim: that single tokens are equal. Speaks of exactly the named model and weights. Score
differences come with an interval, because two equal models also differ on a sample. Needs a judge
in another process than the model's, such as a client of an engine's endpoint.
"""

from typing import Annotated, ClassVar

from pydantic import Field

from fasttrack.evidence.predicates.common import Execution, Facts, Interval, Sha256, Word
from fasttrack.manifest.fields import Count, Identifier
from fasttrack.vocabulary import Kind

TYPE = "urn:fasttrack-decode:predicate:model-eval:v1"
KIND = Kind.MODEL_EVAL

Score = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class ModelEvalV1(Facts):
    """One evaluation task, path against fallback."""

    JUDGED_APART: ClassVar[bool] = True

    model: Word
    """Name of the model."""
    weights: Sha256
    """Digest of the weights."""
    task: Identifier
    """Name of the task."""
    samples: Count
    """Samples that both sides answered."""
    score: Score
    """With the path."""
    baseline: Identifier
    """The backend compared with."""
    baseline_score: Score
    """With that backend."""
    drop: Interval
    """Of baseline_score - score."""
    endpoint: Identifier | None = None
    """Engine whose HTTP endpoint was asked; None for a library call."""
    execution: Execution
    """What ran on the path's side."""

    def problems(self) -> list[str]:
        """Why the statement shows nothing; empty when it does."""
        drop = self.baseline_score - self.score
        outside = not self.drop.low <= drop <= self.drop.high
        odd = [f"a drop of {drop:g} is outside its own interval"] if outside else []
        return [*self.drop.problems(), *odd, *self.execution.problems(), *self.forgeable()]

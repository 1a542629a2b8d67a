# SPDX-License-Identifier: Apache-2.0
"""Words with one fixed meaning that manifest, policy and evidence share."""

from enum import StrEnum


class Tier(StrEnum):
    """What a region claims, from nothing to served; listed in rising order."""

    DECLARED = "declared"
    COMPILED = "compiled"
    KERNEL_TESTED = "kernel-tested"
    STRESS_TESTED = "stress-tested"
    MODEL_EVALUATED = "model-evaluated"
    SERVED = "served"

    @property
    def rank(self) -> int:
        """Position in the rising order, 0 for `declared`."""
        return list(Tier).index(self)


class Kind(StrEnum):
    """Kinds of evidence; a cell belongs to exactly one."""

    SYNC_AUDIT = "sync-audit"
    REFUSAL = "refusal"
    KERNEL_TEST = "kernel-test"
    STRESS = "stress"
    MODEL_EVAL = "model-eval"
    PERFORMANCE = "performance"

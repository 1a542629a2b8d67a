# SPDX-License-Identifier: Apache-2.0
"""Predicates: what a statement can say. One module each; a published version is never edited.

A predicate is added by its module, its line here, its cases, and `scripts/generate`.
"""

from collections.abc import Mapping

from fasttrack.evidence.predicates import (
    kernel_test_v1,
    model_eval_v1,
    performance_v1,
    refusal_v1,
    stress_v1,
    sync_audit_v1,
)
from fasttrack.evidence.predicates.kernel_test_v1 import KernelTestV1
from fasttrack.evidence.predicates.model_eval_v1 import ModelEvalV1
from fasttrack.evidence.predicates.performance_v1 import PerformanceV1
from fasttrack.evidence.predicates.refusal_v1 import RefusalV1
from fasttrack.evidence.predicates.stress_v1 import StressV1
from fasttrack.evidence.predicates.sync_audit_v1 import SyncAuditV1
from fasttrack.vocabulary import Kind

Predicate = SyncAuditV1 | RefusalV1 | KernelTestV1 | StressV1 | ModelEvalV1 | PerformanceV1

PREDICATES: Mapping[str, type[Predicate]] = {
    sync_audit_v1.TYPE: SyncAuditV1,
    refusal_v1.TYPE: RefusalV1,
    kernel_test_v1.TYPE: KernelTestV1,
    stress_v1.TYPE: StressV1,
    model_eval_v1.TYPE: ModelEvalV1,
    performance_v1.TYPE: PerformanceV1,
}
"""Predicate type to its model."""

KINDS: Mapping[str, Kind] = {
    module.TYPE: module.KIND
    for module in (
        sync_audit_v1,
        refusal_v1,
        kernel_test_v1,
        stress_v1,
        model_eval_v1,
        performance_v1,
    )
}
"""Predicate type to the one kind of cell that it can show."""

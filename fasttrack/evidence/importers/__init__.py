# SPDX-License-Identifier: Apache-2.0
"""Results of other tools as unsigned statements: one module per format, listed here.

JUnit XML                    kernel-test, refusal
lm-eval, Inspect             model-eval
vllm bench serve, AIPerf     performance
"""

from collections.abc import Mapping

from fasttrack.evidence.importers.aiperf import import_aiperf
from fasttrack.evidence.importers.base import Importer
from fasttrack.evidence.importers.inspect_logs import import_inspect
from fasttrack.evidence.importers.junit import import_junit
from fasttrack.evidence.importers.lm_eval import import_lm_eval
from fasttrack.evidence.importers.vllm_bench import import_vllm_bench

IMPORTERS: Mapping[str, Importer] = {
    "aiperf": import_aiperf,
    "inspect": import_inspect,
    "junit": import_junit,
    "lm-eval": import_lm_eval,
    "vllm-bench": import_vllm_bench,
}
"""Format to its importer."""

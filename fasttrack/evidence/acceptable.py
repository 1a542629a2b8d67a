# SPDX-License-Identifier: Apache-2.0
"""What a trusted statement of the right bytes must still be.

Measured on the cell's machine, with versions that the policy accepts, and enough of it. Each
function tells the first thing that is wrong, in a sentence, or nothing. Thresholds are applied
here, when a statement is judged, and are in no digest: raising a bar asks no runner to sign again
what is above it.
"""

import operator
from collections.abc import Iterable, Iterator, Mapping
from datetime import date

from fasttrack.evidence import claims
from fasttrack.evidence.failures import one_sided, unsure
from fasttrack.evidence.floors import floors_in_force
from fasttrack.evidence.inputs import UnitInputs
from fasttrack.evidence.machine import GPU_ARCH
from fasttrack.evidence.predicates.common import Machine
from fasttrack.evidence.predicates.kernel_test_v1 import KernelTestV1
from fasttrack.evidence.predicates.model_eval_v1 import ModelEvalV1
from fasttrack.evidence.predicates.performance_v1 import PerformanceV1
from fasttrack.evidence.predicates.refusal_v1 import RefusalV1
from fasttrack.evidence.predicates.stress_v1 import StressV1
from fasttrack.evidence.predicates.sync_audit_v1 import SyncAuditV1
from fasttrack.evidence.statement import Statement
from fasttrack.evidence.subject import ANYWHERE, hardware_of, tested_with, unit_of
from fasttrack.evidence.versions import is_build_of, within
from fasttrack.globs import matches
from fasttrack.manifest.cells import Cell
from fasttrack.manifest.consistency import package_name
from fasttrack.manifest.model import AUDIT_WAIVER, Manifest, Waiver
from fasttrack.manifest.words import Ranks
from fasttrack.policy.model import Floors, Hardware, Policy
from fasttrack.vocabulary import Kind, Tier

PROFILES = ("smoke", "evidence", "soak")
"""Stress profiles, rising."""


def device_fault(machine: Machine, cell: Cell, vocabulary: Mapping[str, Hardware]) -> str:
    """How the machine is not the one that the cell asks for.

    The driver's name of a GPU must be the policy's; processors have too many names, and only their
    architecture is compared. A slice of a GPU is another device.
    """
    wanted = hardware_of(cell)
    if wanted not in {ANYWHERE, machine.hardware}:
        return f"measured on {machine.hardware}, not on {wanted}"
    known = vocabulary.get(machine.hardware)
    if known is None:
        return f"measured on {machine.hardware}, which the policy does not know"
    if machine.arch != known.arch:
        return f"{machine.hardware} is {known.arch}, and this ran on {machine.arch}"
    if known.arch.startswith(GPU_ARCH) and machine.device != known.gpu:
        return f"{machine.hardware} is {known.gpu}, and this ran on {machine.device}"
    return "" if wanted == ANYWHERE else _share_fault(machine, cell)


def _share_fault(machine: Machine, cell: Cell) -> str:
    """A claim names how many devices serve; real ranks need one each, other cells one at all."""
    count = machine.count
    if machine.mig:
        return f"measured on a slice of {machine.device}"
    if cell.kind is Kind.PERFORMANCE:
        wanted = cell.values.get("ours.gpu_count", 1)
        return "" if count == wanted else f"measured on {count} devices, not on {wanted}"
    real = cell.values.get("ranks") == Ranks.REAL
    least = int(cell.values.get("tensor_parallel", 1)) if real else 1
    return "" if count >= least else f"measured on {count} devices, and real ranks need {least}"


def toolchain_fault(statement: Statement, cell: Cell, policy: Policy, manifest: Manifest) -> str:
    """Which measured version the policy or the manifest does not accept.

    A version that is told must fit the policy, whatever the kind. One that is not told is a fault
    only where the path itself was compiled and run for a GPU: neither an audit of finished machine
    code, nor a question to the gate, nor a test on a processor needs the packages that build
    kernels. There, too, the versions count that the manifest's variants were built with.
    """
    predicate = statement.predicate
    built = hardware_of(cell) != ANYWHERE and predicate.machine.arch.startswith(GPU_ARCH)
    found: dict[str, str | None] = {
        package_name(name): version for name, version in predicate.toolchain.packages.items()
    }
    found |= {"driver": predicate.machine.driver, "cuda": predicate.machine.cuda}
    wanted = [
        *(("policy", name, want, operator.eq) for name, want in policy.toolchain.exact.items()),
        *(("policy", name, want, within) for name, want in policy.toolchain.ranges.items()),
        *(("manifest", name, want, is_build_of) for name, want in manifest.toolchain.items()),
    ]
    for whose, name, want, fits in wanted:
        version = found.get(package_name(name))
        if version is None and built:
            return f"does not tell its version of {name}; the {whose} wants {want}"
        if version is not None and (built or whose == "policy") and not fits(version, want):
            return f"{name} {version}, where the {whose} wants {want}"
    return ""


def named_test_fault(statement: Statement, cell: Cell, manifest: Manifest) -> str:
    """Which test that the manifest names did not pass, of those that judge the cell's unit."""
    predicate = statement.predicate
    if not isinstance(predicate, KernelTestV1 | RefusalV1):
        return ""
    patterns = [pattern for unit in tested_with(manifest, unit_of(cell)) for pattern in unit.tests]
    for test in manifest.evidence.tests:
        file = test.partition("::")[0]
        mine = any(matches(pattern, file) for pattern in patterns)
        if mine and not any(_is_of(passed, test) for passed in predicate.results.passed):
            return f"{test}, which the manifest wants passed, is not among the tests that did"
    return ""


def silent_file_fault(statement: Statement, inputs: UnitInputs) -> str:
    """Which test file that runs, and surely has a test, has none among the tests that passed."""
    predicate = statement.predicate
    if not isinstance(predicate, KernelTestV1 | RefusalV1):
        return ""
    for file in inputs.runs:
        spoke = any(passed.startswith(f"{file}::") for passed in predicate.results.passed)
        if not spoke and inputs.has_tests(file):
            return f"no test of {file} is among the tests that passed"
    return ""


def waiver_faults(audit: SyncAuditV1, waivers: Iterable[Waiver], day: date) -> Iterator[str]:
    """Which waivers of an audit do not hold: they ended, or the manifest has none like them.

    Whoever collects lists those that the manifest had then; people can take one back since.

    Args:
        audit: with the waivers that it lists.
        waivers: the manifest's.
        day: the UTC day to judge at.
    """
    standing = {
        waiver.fingerprint: waiver.expires for waiver in waivers if waiver.rule == AUDIT_WAIVER
    }
    for kernel in audit.kernels:
        if kernel.waiver is None:
            continue
        known = standing.get(kernel.skeleton)
        if known is None:
            yield f"{kernel.name}: the manifest does not waive its skeleton {kernel.skeleton}"
        elif (end := min(known, kernel.waiver.expires)) < day:
            yield f"a waiver ended on {end}"


def _is_of(passed: str, test: str) -> bool:
    """Whether a node id is a test, one of its parameters, or a test of its file or class."""
    return passed == test or passed.startswith((f"{test}[", f"{test}::"))


def floor_fault(statement: Statement, cell: Cell, policy: Policy, manifest: Manifest) -> str:
    """What there is too little of, or what was compared with something else or in another way."""
    predicate = statement.predicate
    if isinstance(predicate, PerformanceV1):
        return one_sided(predicate) or _claim_fault(predicate, policy, manifest)
    if not isinstance(predicate, KernelTestV1 | StressV1 | ModelEvalV1):
        return ""
    floors = floors_in_force(policy, manifest)
    if isinstance(predicate, KernelTestV1):
        return _seeds_fault(predicate.seeds, floors)
    if isinstance(predicate, StressV1):
        return _seeds_fault(predicate.seeds, floors) or _stress_fault(predicate, floors)
    served = {region.id for region in manifest.scope if region.tier is Tier.SERVED}
    if cell.region in served and predicate.endpoint is None:
        return "a call of the library, where the tier `served` asks an engine's endpoint"
    return _model_fault(predicate, manifest) or unsure(predicate) or _eval_fault(predicate, floors)


def _seeds_fault(seeds: tuple[int, ...], floors: Floors) -> str:
    count = len(set(seeds))
    return "" if count >= floors.kernel_seeds else f"{count} of {floors.kernel_seeds} seeds"


def _stress_fault(predicate: StressV1, floors: Floors) -> str:
    if PROFILES.index(predicate.profile) < PROFILES.index(floors.stress_profile):
        return f"profile {predicate.profile}, below {floors.stress_profile}"
    least = min(predicate.settings, key=lambda setting: setting.iterations)
    if least.iterations < floors.stress_iterations:
        return f"{least.iterations} of {floors.stress_iterations} iterations of {least.delay}"
    return ""


def _model_fault(predicate: ModelEvalV1, manifest: Manifest) -> str:
    """Evals count for exactly one model, its weights when they have a digest, and one baseline."""
    digest, fallback = manifest.weights.digest, manifest.code.switch.fallback
    if predicate.model != manifest.model:
        return f"speaks of the model {predicate.model}, not of {manifest.model}"
    if digest is not None and digest != f"sha256:{predicate.weights}":
        return "speaks of other weights than the manifest"
    if predicate.baseline != fallback:
        return f"compares with {predicate.baseline}, not with {fallback}"
    return ""


def _eval_fault(predicate: ModelEvalV1, floors: Floors) -> str:
    if predicate.samples < floors.eval_samples:
        return f"{predicate.samples} of {floors.eval_samples} samples"
    if predicate.drop.high > floors.eval_drop_max:
        return f"the drop may be {predicate.drop.high:g}, above {floors.eval_drop_max:g}"
    return ""


def _claim_fault(predicate: PerformanceV1, policy: Policy, manifest: Manifest) -> str:
    """Why the measurement does not bear out every claim of its conditions."""
    elsewhere = {claims.Outcome.OTHER_CONDITIONS, claims.Outcome.UNCONTROLLED}
    for claim in manifest.claims:
        found = claims.compare(manifest, claim, predicate, policy.hardware)
        if found.outcome not in {claims.Outcome.BORNE_OUT, *elsewhere}:
            return f"{claim.id}: {found.reasons[0]}"
    return ""

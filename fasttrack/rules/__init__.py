# SPDX-License-Identifier: Apache-2.0
"""The registry: every rule, one line each, in the order of their ids.

A rule is added by its file in the family's folder, its line here, its cases under
`tests/cases/rules/`, and `scripts/generate`; a test compares the four.
"""

from fasttrack.rules.base import Rule
from fasttrack.rules.confinement.agent_instructions import AgentInstructions
from fasttrack.rules.confinement.bidi import Bidi
from fasttrack.rules.confinement.binary import Binary
from fasttrack.rules.confinement.change_budget import ChangeBudget
from fasttrack.rules.confinement.ci_file import CiFile
from fasttrack.rules.confinement.dependency_files import DependencyFiles
from fasttrack.rules.confinement.generated import Generated
from fasttrack.rules.confinement.git_attributes import GitAttributes
from fasttrack.rules.confinement.hostile_path import HostilePath
from fasttrack.rules.confinement.invisible_characters import InvisibleCharacters
from fasttrack.rules.confinement.lfs_pointer import LfsPointer
from fasttrack.rules.confinement.mode_change import ModeChange
from fasttrack.rules.confinement.new_import import NewImport
from fasttrack.rules.confinement.non_ascii_path import NonAsciiPath
from fasttrack.rules.confinement.outside_scope import OutsideScope
from fasttrack.rules.confinement.oversized_file import OversizedFile
from fasttrack.rules.confinement.policy_change import PolicyChange
from fasttrack.rules.confinement.policy_mixed import PolicyMixed
from fasttrack.rules.confinement.protected_rename import ProtectedRename
from fasttrack.rules.confinement.rebase_needed import RebaseNeeded
from fasttrack.rules.confinement.source_encoding import SourceEncoding
from fasttrack.rules.confinement.submodule import Submodule
from fasttrack.rules.confinement.symlink import Symlink
from fasttrack.rules.confinement.test_settings import TestSettings
from fasttrack.rules.confinement.twin_path import TwinPath
from fasttrack.rules.confinement.unportable_path import UnportablePath
from fasttrack.rules.confinement.wiring_budget import WiringBudget
from fasttrack.rules.confinement.wiring_symbol import WiringSymbol
from fasttrack.rules.evidence.admitted import Admitted
from fasttrack.rules.evidence.altered_evidence import AlteredEvidence
from fasttrack.rules.evidence.audited_code import AuditedCode
from fasttrack.rules.evidence.below_floor import BelowFloor
from fasttrack.rules.evidence.confidence import Confidence
from fasttrack.rules.evidence.contradiction import Contradiction
from fasttrack.rules.evidence.disagreement import Disagreement
from fasttrack.rules.evidence.evaluation import Evaluation
from fasttrack.rules.evidence.execution_proof import ExecutionProof
from fasttrack.rules.evidence.failed_run import FailedRun
from fasttrack.rules.evidence.forged_signature import ForgedSignature
from fasttrack.rules.evidence.future_run import FutureRun
from fasttrack.rules.evidence.impossible_time import ImpossibleTime
from fasttrack.rules.evidence.interleaved import Interleaved
from fasttrack.rules.evidence.mixed_boundary import MixedBoundary
from fasttrack.rules.evidence.moved_boundary import MovedBoundary
from fasttrack.rules.evidence.no_claim import NoClaim
from fasttrack.rules.evidence.one_cubin import OneCubin
from fasttrack.rules.evidence.other_bytes import OtherBytes
from fasttrack.rules.evidence.other_machine import OtherMachine
from fasttrack.rules.evidence.other_versions import OtherVersions
from fasttrack.rules.evidence.own_key import OwnKey
from fasttrack.rules.evidence.plan_seeds import PlanSeeds
from fasttrack.rules.evidence.removed_evidence import RemovedEvidence
from fasttrack.rules.evidence.reused_run import ReusedRun
from fasttrack.rules.evidence.revoked_signer import RevokedSigner
from fasttrack.rules.evidence.signer_role import SignerRole
from fasttrack.rules.evidence.skipped_tests import SkippedTests
from fasttrack.rules.evidence.too_few_pools import TooFewPools
from fasttrack.rules.evidence.too_old import TooOld
from fasttrack.rules.evidence.unasked_cell import UnaskedCell
from fasttrack.rules.evidence.undeclared_inputs import UndeclaredInputs
from fasttrack.rules.evidence.unknown_signer import UnknownSigner
from fasttrack.rules.evidence.unreadable_evidence import UnreadableEvidence
from fasttrack.rules.manifest.claim_code import ClaimCode
from fasttrack.rules.manifest.claims import Claims
from fasttrack.rules.manifest.config_folder import ConfigFolder
from fasttrack.rules.manifest.eval_tasks import EvalTasks
from fasttrack.rules.manifest.lease import Lease
from fasttrack.rules.manifest.manifest_schema import ManifestSchema
from fasttrack.rules.manifest.named_weights import NamedWeights
from fasttrack.rules.manifest.policy_version import PolicyVersion
from fasttrack.rules.manifest.region_hardware import RegionHardware
from fasttrack.rules.manifest.region_overlap import RegionOverlap
from fasttrack.rules.manifest.removal_reach import RemovalReach
from fasttrack.rules.manifest.root_overlap import RootOverlap
from fasttrack.rules.manifest.split import Split
from fasttrack.rules.manifest.sponsor import Sponsor
from fasttrack.rules.manifest.state import State
from fasttrack.rules.manifest.switch_points import SwitchPoints
from fasttrack.rules.manifest.unbounded import Unbounded
from fasttrack.rules.manifest.ungoverned_code import UngovernedCode
from fasttrack.rules.manifest.unit_archs import UnitArchs
from fasttrack.rules.manifest.unit_files import UnitFiles
from fasttrack.rules.manifest.waivers import Waivers
from fasttrack.rules.manifest.weaker_than_policy import WeakerThanPolicy
from fasttrack.rules.manifest.widening import Widening
from fasttrack.rules.manifest.wider_scope import WiderScope

FAMILIES = {
    "FT1": "confinement",
    "FT3": "manifest",
    "FT5": "evidence",
}
"""First digit of the ids to the family's folder and page."""

RULES: tuple[Rule, ...] = (
    OutsideScope(),
    WiringSymbol(),
    WiringBudget(),
    Symlink(),
    Submodule(),
    ModeChange(),
    GitAttributes(),
    ProtectedRename(),
    HostilePath(),
    NonAsciiPath(),
    TwinPath(),
    Binary(),
    Generated(),
    LfsPointer(),
    OversizedFile(),
    Bidi(),
    InvisibleCharacters(),
    CiFile(),
    PolicyChange(),
    PolicyMixed(),
    AgentInstructions(),
    TestSettings(),
    DependencyFiles(),
    NewImport(),
    ChangeBudget(),
    RebaseNeeded(),
    SourceEncoding(),
    UnportablePath(),
    ManifestSchema(),
    WeakerThanPolicy(),
    Widening(),
    WiderScope(),
    RegionOverlap(),
    RootOverlap(),
    Unbounded(),
    UnitFiles(),
    SwitchPoints(),
    ClaimCode(),
    Lease(),
    Sponsor(),
    Claims(),
    Waivers(),
    State(),
    NamedWeights(),
    PolicyVersion(),
    Split(),
    UngovernedCode(),
    UnitArchs(),
    RegionHardware(),
    RemovalReach(),
    EvalTasks(),
    ConfigFolder(),
    AlteredEvidence(),
    RemovedEvidence(),
    UnreadableEvidence(),
    ForgedSignature(),
    OwnKey(),
    ReusedRun(),
    Contradiction(),
    ImpossibleTime(),
    RevokedSigner(),
    FutureRun(),
    PlanSeeds(),
    Disagreement(),
    OneCubin(),
    Interleaved(),
    Confidence(),
    UnknownSigner(),
    SignerRole(),
    TooFewPools(),
    OtherBytes(),
    UnaskedCell(),
    MovedBoundary(),
    TooOld(),
    OtherMachine(),
    OtherVersions(),
    UndeclaredInputs(),
    ExecutionProof(),
    SkippedTests(),
    FailedRun(),
    Admitted(),
    BelowFloor(),
    Evaluation(),
    NoClaim(),
    MixedBoundary(),
    AuditedCode(),
)


def family(rule: Rule) -> str:
    """Name of a rule's family."""
    return FAMILIES[rule.id[:3]]

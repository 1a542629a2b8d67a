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
from fasttrack.rules.confinement.passing_state import PassingState
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
from fasttrack.rules.evidence.loosened_contract import LoosenedContract
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
from fasttrack.rules.isolation.asks_for_tests import AsksForTests
from fasttrack.rules.isolation.blanket_except import BlanketExcept
from fasttrack.rules.isolation.builtin_names import BuiltinNames
from fasttrack.rules.isolation.environment import Environment
from fasttrack.rules.isolation.fallback_removed import FallbackRemoved
from fasttrack.rules.isolation.file_written import FileWritten
from fasttrack.rules.isolation.foreign_object import ForeignObject
from fasttrack.rules.isolation.foreign_operators import ForeignOperators
from fasttrack.rules.isolation.foreign_registry import ForeignRegistry
from fasttrack.rules.isolation.global_settings import GlobalSettings
from fasttrack.rules.isolation.import_probe import ImportProbe
from fasttrack.rules.isolation.import_work import ImportWork
from fasttrack.rules.isolation.imported_model import ImportedModel
from fasttrack.rules.isolation.init_exports import InitExports
from fasttrack.rules.isolation.module_table import ModuleTable
from fasttrack.rules.isolation.native_reach import NativeReach
from fasttrack.rules.isolation.network import Network
from fasttrack.rules.isolation.only_path import OnlyPath
from fasttrack.rules.isolation.other_model import OtherModel
from fasttrack.rules.isolation.other_process import OtherProcess
from fasttrack.rules.isolation.process_hooks import ProcessHooks
from fasttrack.rules.isolation.run_as_code import RunAsCode
from fasttrack.rules.isolation.startup_files import StartupFiles
from fasttrack.rules.isolation.switch_default import SwitchDefault
from fasttrack.rules.isolation.unread_source import UnreadSource
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
from fasttrack.rules.validation.assertions_removed import AssertionsRemoved
from fasttrack.rules.validation.base_tests import BaseTests
from fasttrack.rules.validation.contract_changed import ContractChanged
from fasttrack.rules.validation.fewer_iterations import FewerIterations
from fasttrack.rules.validation.fewer_parameters import FewerParameters
from fasttrack.rules.validation.golden_files import GoldenFiles
from fasttrack.rules.validation.idle_assertions import IdleAssertions
from fasttrack.rules.validation.looser_tolerance import LooserTolerance
from fasttrack.rules.validation.lower_bar import LowerBar
from fasttrack.rules.validation.mocked_unit import MockedUnit
from fasttrack.rules.validation.oracle_edited import OracleEdited
from fasttrack.rules.validation.seeds_pinned import SeedsPinned
from fasttrack.rules.validation.test_collection import TestCollection
from fasttrack.rules.validation.tests_lost import TestsLost
from fasttrack.rules.validation.tests_skipped import TestsSkipped
from fasttrack.rules.validation.untold_tests import UntoldTests

FAMILIES = {
    "FT1": "confinement",
    "FT2": "isolation",
    "FT3": "manifest",
    "FT4": "validation",
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
    PassingState(),
    ForeignObject(),
    ModuleTable(),
    Environment(),
    BuiltinNames(),
    ForeignOperators(),
    ForeignRegistry(),
    RunAsCode(),
    NativeReach(),
    OtherProcess(),
    Network(),
    FileWritten(),
    ProcessHooks(),
    GlobalSettings(),
    ImportWork(),
    InitExports(),
    ImportedModel(),
    OtherModel(),
    StartupFiles(),
    UnreadSource(),
    SwitchDefault(),
    FallbackRemoved(),
    BlanketExcept(),
    OnlyPath(),
    AsksForTests(),
    ImportProbe(),
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
    TestsLost(),
    TestsSkipped(),
    FewerParameters(),
    AssertionsRemoved(),
    IdleAssertions(),
    LooserTolerance(),
    SeedsPinned(),
    FewerIterations(),
    LowerBar(),
    OracleEdited(),
    GoldenFiles(),
    MockedUnit(),
    UntoldTests(),
    ContractChanged(),
    BaseTests(),
    TestCollection(),
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
    LoosenedContract(),
)


def family(rule: Rule) -> str:
    """Name of a rule's family."""
    return FAMILIES[rule.id[:3]]

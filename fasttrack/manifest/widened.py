# SPDX-License-Identifier: Apache-2.0
"""One widening, and its kinds."""

from dataclasses import dataclass
from enum import StrEnum


class WideningKind(StrEnum):
    """What lets more through."""

    MANIFEST = "manifest"
    MODEL = "model"
    STATE = "state"
    ROOT = "root"
    GATE = "gate"
    WIRING = "wiring"
    BUDGET = "budget"
    SWITCH = "switch"
    UNIT = "unit"
    UNIT_INPUTS = "unit-inputs"
    UNIT_AXIS = "unit-axis"
    SWITCH_POINT = "switch-point"
    ARCH = "arch"
    TESTS = "tests"
    POINT = "point"
    TIER = "tier"
    REFUSAL = "refusal"
    THRESHOLD = "threshold"
    TOOLCHAIN = "toolchain"
    CLAIM = "claim"
    LEASE = "lease"
    OWNER = "owner"
    REMOVAL = "removal"
    SPONSOR = "sponsor"
    WAIVER = "waiver"


_BY_EVIDENCE = {WideningKind.POINT, WideningKind.TIER}


@dataclass(frozen=True)
class Widening:
    """One thing that the head lets through and the base does not.

    Attributes:
        kind: what it is.
        saw: what the head has.
        want: what would not be a widening.
    """

    kind: WideningKind
    saw: str
    want: str

    @property
    def needs_human(self) -> bool:
        """Whether a person must decide; points and tiers are answered by evidence."""
        return self.kind not in _BY_EVIDENCE

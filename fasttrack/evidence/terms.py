# SPDX-License-Identifier: Apache-2.0
"""What statements are held against: policy, manifest, day, and what surrounds the bytes."""

from dataclasses import dataclass, field
from datetime import date

from fasttrack.case import Case
from fasttrack.evidence.surroundings import Around, Nowhere, surroundings
from fasttrack.manifest.model import Manifest, Waiver
from fasttrack.policy.model import Policy


@dataclass(frozen=True)
class Terms:
    """What statements are held against.

    Attributes:
        policy: the policy in force.
        manifest: the one whose cells they speak of.
        day: the UTC day to judge at.
        around: what files that no digest holds are, and ever were. By default there are none,
            which is right for whoever asks only for what is covered without grace.
        reviewed: the waivers that hold; None for those of the manifest.
    """

    policy: Policy
    manifest: Manifest
    day: date
    around: Around = field(default_factory=Nowhere)
    reviewed: tuple[Waiver, ...] | None = None

    @classmethod
    def of(cls, case: Case, path: str) -> "Terms":
        """Those of a change, for the cells of the manifest at a path after the merge.

        A waiver that the change brings along lifts nothing.
        """
        around, base = case.once(surroundings), case.base.valid.get(path)
        waivers = base.waivers if base else ()
        return cls(case.policy, case.head.valid[path], case.as_of, around, waivers)

    @property
    def waivers(self) -> tuple[Waiver, ...]:
        """The waivers that hold, if their days have not passed."""
        return self.manifest.waivers if self.reviewed is None else self.reviewed

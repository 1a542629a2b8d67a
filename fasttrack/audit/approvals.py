# SPDX-License-Identifier: Apache-2.0
"""What people decided about kernels: the skeleton that was approved, and waivers.

A skeleton is approved so that a change of compiler shows itself. A waiver lets one kernel pass that
could not be proved; it holds for exactly the skeleton that its owner looked at, and for a time.
Nothing waives a kernel that is violated.
"""

from datetime import date
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from fasttrack import strict_yaml
from fasttrack.audit.finding import Audited, Verdict
from fasttrack.errors import InputError, Problem
from fasttrack.manifest.fields import Handle, Text

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Arch = Annotated[str, Field(pattern=r"^sm_[0-9]{2,3}[af]?$")]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Approved(_Strict):
    """The skeleton of one kernel on one architecture that a person approved."""

    kernel: Annotated[str, Field(min_length=1)]
    """The kernel's symbol."""
    arch: Arch
    """Such as `sm_90a`."""
    skeleton: Digest
    """As the audit prints it."""


class Waiver(Approved):
    """Why a kernel that could not be proved may be used all the same."""

    reason: Text
    """What was looked at, and why it is right."""
    owner: Handle
    """Who says so."""
    since: date | None = None
    """First UTC day; without it, it has no beginning."""
    expires: date
    """Last UTC day."""

    def lapse(self, as_of: date) -> str:
        """Why it does not hold on a day; empty if it does."""
        if self.since is not None and as_of < self.since:
            return f"it begins on {self.since}"
        return f"it expired after {self.expires}" if as_of > self.expires else ""


class Approvals(_Strict):
    """All that people decided."""

    approvals: Literal[1]
    """Version of the format."""
    skeletons: tuple[Approved, ...] = ()
    """At most one for each kernel and architecture."""
    waivers: tuple[Waiver, ...] = ()
    """At most one for each kernel and architecture."""

    def skeleton(self, kernel: str, arch: str) -> str | None:
        """The skeleton that was approved for a kernel, or None."""
        found = (one for one in self.skeletons if (one.kernel, one.arch) == (kernel, arch))
        return next((one.skeleton for one in found), None)

    def waiver(self, audited: Audited, as_of: date) -> Waiver | None:
        """The waiver that lets a result pass on a day, or None."""
        if audited.verdict is not Verdict.UNPROVEN:
            return None
        wanted = (audited.kernel, audited.arch, audited.skeleton)
        for one in self.waivers:
            if (one.kernel, one.arch, one.skeleton) == wanted and not one.lapse(as_of):
                return one
        return None

    def no_waiver(self, audited: Audited, as_of: date) -> str:
        """Why the waiver of a kernel that is not proved does not hold; empty if it has none."""
        for one in self.waivers:
            if (one.kernel, one.arch) != (audited.kernel, audited.arch):
                continue
            if audited.verdict is Verdict.VIOLATED:
                return "nothing waives a kernel that is violated"
            if audited.verdict is Verdict.UNPROVEN and one.skeleton != audited.skeleton:
                return f"it was given for another skeleton, {one.skeleton[:12]}"
            if audited.verdict is Verdict.UNPROVEN:
                return one.lapse(as_of)
        return ""


def load_approvals(text: str | bytes, source: str) -> Approvals:
    """Parses approvals.

    Raises:
        InputError: with every problem found, a kernel that is named twice among them.
    """
    found = strict_yaml.validate(strict_yaml.parse(text, source), Approvals)
    problems = [
        Problem(f"{source}: {key}", f"{one.kernel} for {one.arch} twice", "one entry for each")
        for key, entries in (("skeletons", found.skeletons), ("waivers", found.waivers))
        for at, one in enumerate(entries)
        if any((one.kernel, one.arch) == (other.kernel, other.arch) for other in entries[:at])
    ]
    problems += [
        Problem(
            f"{source}: waivers",
            f"{one.kernel} from {one.since} to {one.expires}",
            "a last day that is not before the first",
        )
        for one in found.waivers
        if one.since is not None and one.since > one.expires
    ]
    if problems:
        raise InputError(problems)
    return found

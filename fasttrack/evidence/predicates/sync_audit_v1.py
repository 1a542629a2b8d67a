# SPDX-License-Identifier: Apache-2.0
"""Claims: in one variant's machine code, every load that must wait for others waits.

Does not claim: that the code is right, or fast; that its contract tells the truth; or anything
about code that was not shipped. What was launched elsewhere is held against `cubin`, see
`fasttrack.evidence.machine_code`.
"""

from typing import Annotated, Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from fasttrack.evidence.predicates.common import Facts, Record, Sha256, Word, without_unsaid
from fasttrack.manifest.fields import Day, Handle, Text
from fasttrack.vocabulary import Kind

TYPE = "urn:fasttrack-decode:predicate:sync-audit:v1"
KIND = Kind.SYNC_AUDIT


class AuditWaiver(Record):
    """An `unproven` verdict that a person looked at; counts while the manifest has it, too."""

    skeleton: Sha256
    """Digest of the memory and synchronisation skeleton that was looked at."""
    reason: Text
    """Why it is right all the same."""
    owner: Handle
    """Who says so."""
    expires: Day
    """Last UTC day."""


class AuditedKernel(Record):
    """One kernel of the variant."""

    name: Annotated[str, Field(min_length=1, max_length=4096)]
    """Its symbol; `?` where the machine code could not be read."""
    verdict: Literal["proved", "violated", "unproven"]
    """What the analysis found."""
    skeleton: Sha256
    """Digest of its memory and synchronisation skeleton."""
    waiver: AuditWaiver | None = None
    """For `unproven` only."""

    def problems(self) -> list[str]:
        """Why it is not accepted; empty when it is."""
        if self.verdict == "proved":
            return []
        if self.verdict == "unproven" and self.waiver is not None:
            same = self.waiver.skeleton == self.skeleton
            return [] if same else [f"{self.name}: the waiver is for other code"]
        return [f"{self.name}: {self.verdict}"]


class SyncAuditV1(Facts):
    """Audit of one variant for one architecture."""

    cubin: Sha256
    """Digest of the machine code."""
    kernels: tuple[AuditedKernel, ...] = Field(min_length=1, max_length=256)
    """Every kernel in it."""
    disassembler: Word
    """Tool and version that read it."""
    assembler: Word | None = None
    """Tool and version that made it, as the machine code says; None where it does not."""

    @model_serializer(mode="wrap")
    def _as_written(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return without_unsaid(write(self), "assembler")

    def problems(self) -> list[str]:
        """Why the statement shows nothing; empty when it does."""
        return [problem for kernel in self.kernels for problem in kernel.problems()]

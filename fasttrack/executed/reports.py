# SPDX-License-Identifier: Apache-2.0
"""What the processes inside the sandbox send, read strictly: code of a change ran beside them."""

import secrets
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from fasttrack.executed.sandbox import Ended

Name = Annotated[str, Field(max_length=1024)]
Words = Annotated[str, Field(max_length=4096)]


class Report(BaseModel):
    """A frozen, strict report; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=False, defer_build=True)

    nonce: Name
    """The job's, so that no other output is taken for a report."""


class ProbeReport(Report):
    """What an import did."""

    loaded: tuple[Name, ...] = Field(max_length=50_000)
    """Modules that are not governed, in the order of their import."""
    late: tuple[Name, ...] = Field(max_length=50_000)
    """Those that can not be imported without a governed one."""
    failed: dict[Name, Words] = Field(max_length=50_000)
    """Governed modules that can not be imported, and why."""
    changes: tuple[tuple[Words, Words, Name], ...] = Field(max_length=10_000)
    """What, how, and after which module."""
    whole: bool
    """Whether everything was looked at."""
    states: dict[Name, dict[Words, Words]] = Field(max_length=50_000)
    """What late modules hold."""


class TestsReport(Report):
    """What pytest collected or ran."""

    __test__ = False

    collected: dict[Words, tuple[Name, ...]] = Field(max_length=1_000_000)
    """Test id to its marks that skip it or expect it to fail."""
    outcomes: dict[Words, Name] = Field(max_length=1_000_000)
    """Test id to `passed`, `failed` or `skipped`."""
    messages: dict[Words, Words] = Field(max_length=1_000_000)
    """Test id to the last line that it failed with."""
    errors: tuple[Words, ...] = Field(max_length=10_000)
    """Files that could not be collected, and why."""
    exit_code: int
    """pytest's."""


def new_nonce() -> str:
    """A name for a job that nobody can guess."""
    return secrets.token_hex(16)


def read(ended: Ended, model: type[Report], nonce: str) -> Report | str:
    """A report to a job, or why there is none."""
    found = ended.read(model)
    if not isinstance(found, str) and found.nonce != nonce:
        return "its report answers another job"
    return found

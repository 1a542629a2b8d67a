# SPDX-License-Identifier: Apache-2.0
"""What the records of a policy share: one base, and the types of their fields."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Identifier = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_.-]{0,63}$")]
RuleId = Annotated[str, StringConstraints(pattern=r"^FT[1-9][0-9]{2}$")]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=1, le=10**9)]
Days = Annotated[int, Field(ge=1, le=3650)]


class Record(BaseModel):
    """A frozen, strict piece of the policy; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

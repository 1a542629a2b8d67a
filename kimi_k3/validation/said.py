# SPDX-License-Identifier: Apache-2.0
"""Messages of a candidate's process, read as what anybody may have written."""

from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

Text = Annotated[str, Field(max_length=1000)]
Texts = Annotated[tuple[Text, ...], Field(max_length=10_000)]
Count = Annotated[int, Field(ge=0, le=2**40)]


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Ready(_Message):
    """The first message."""

    error: Text
    """Why the program could not be made, or empty."""
    files: Texts = ()
    """Files of this package that the process has imported."""


class Answer(_Message):
    """The answer to a request; see `session.Told`."""

    nonce: Text
    """The request's."""
    error: Text
    """What the program raised, or empty."""
    launches: Annotated[tuple[tuple[Text, Text, Count], ...], Field(max_length=10_000)]
    """Kernel's name, its digest, how often it was launched."""
    failed: Texts
    """Launches that raised."""
    fallbacks: Count
    """Calls that something else than a kernel served."""
    foreign: Texts
    """Operations of torch that ran beside the launches."""
    asked: Texts
    """Modules that it wanted and must not have."""
    traced: Texts | None
    """What a profiler saw run on the device."""


M = TypeVar("M", bound=_Message)


def read(kind: type[M], message: bytes) -> M | None:
    """A message of that kind, or None when it is none."""
    try:
        return kind.model_validate_json(message)
    except ValidationError:
        return None

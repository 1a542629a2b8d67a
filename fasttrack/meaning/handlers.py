# SPDX-License-Identifier: Apache-2.0
"""Tables of what the model does for foreign functions that it knows by name."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from fasttrack.meaning.values import Foreign, Values

if TYPE_CHECKING:
    from fasttrack.meaning.calls import Arguments
    from fasttrack.meaning.reader import Reader

Handler = Callable[["Reader", Foreign, "Arguments"], Values]


def rows(handler: Handler, names: str) -> dict[str, Handler]:
    """One row for each of some names."""
    return dict.fromkeys(names.split(), handler)

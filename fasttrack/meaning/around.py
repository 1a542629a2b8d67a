# SPDX-License-Identifier: Apache-2.0
"""What a look through one file asks of the modules around it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from fasttrack.meaning.imports import Imported


@dataclass(frozen=True)
class Around:
    """What the modules around a file make of its names.

    Attributes:
        lent: by a file's imports and words, names that other modules of the repository lend to it
            and that need a look, with the first parts of what they stand for.
        foreign: imported names, and attributes with a dot, that may be foreign; 1 where a call of
            one may give something foreign.
        makers: imported names of modules whose functions hand nothing through.
        plain: imported names that stand for classes and functions of the path's own modules.
    """

    lent: Callable[[Iterable[Imported], frozenset[str]], Iterable[str]]
    foreign: Callable[[Iterable[Imported]], Mapping[str, int]]
    makers: Callable[[Iterable[Imported]], frozenset[str]]
    plain: Callable[[Iterable[Imported]], frozenset[str]]

# SPDX-License-Identifier: Apache-2.0
"""A free list of ids that knows which are out."""

from collections.abc import Iterable


class Pool:
    """Ids that are lent and given back; the one given back last is lent first.

    Reuse at once keeps what is touched small, and lets a stale cache show itself early.
    """

    def __init__(self, name: str, ids: range) -> None:
        self.name = name
        self.size = len(ids)
        self._free = list(reversed(ids))  # the lowest is lent first
        self._out: set[int] = set()

    @property
    def free(self) -> int:
        """How many are not lent."""
        return len(self._free)

    def take(self, count: int) -> tuple[int, ...]:
        """Lends `count` ids.

        Raises:
            ValueError: fewer are free.
        """
        if count > len(self._free):
            raise ValueError(f"{count} {self.name} wanted; {len(self._free)} are free")
        taken = tuple(self._free.pop() for _ in range(count))
        self._out.update(taken)
        return taken

    def give(self, ids: Iterable[int]) -> None:
        """Takes ids back.

        Raises:
            ValueError: some are not lent, or come twice; nothing is taken back then.
        """
        back = list(ids)
        strange = sorted(set(back) - self._out)
        if strange or len(set(back)) != len(back):
            raise ValueError(f"{self.name} {strange or back} given back, but not lent (once)")
        self._out.difference_update(back)
        self._free.extend(reversed(back))

    def check_all_free(self) -> None:
        """Finds leaks.

        Raises:
            ValueError: some ids are lent.
        """
        if self._out:
            raise ValueError(f"{self.name} {sorted(self._out)} were never given back")

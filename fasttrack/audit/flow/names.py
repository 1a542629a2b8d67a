# SPDX-License-Identifier: Apache-2.0
"""Names of expressions: equal names are equal numbers in the same thread."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fasttrack.audit.flow.values import Value


@dataclass(slots=True)
class Names:
    """Gives equal expressions over the launch's constants and the thread's indices one name."""

    known: dict[tuple[object, ...], int] = field(default_factory=dict)
    uniform: list[bool] = field(default_factory=list)
    opposites: dict[int, int] = field(default_factory=dict)
    keys: list[tuple[object, ...]] = field(default_factory=list)
    unknowns: dict[int, frozenset[int]] = field(default_factory=dict)

    def opposite(self, name: int | None) -> int | None:
        """The name of a predicate's opposite."""
        if name is None:
            return None
        other = self.opposites.get(name)
        if other is None:
            other = self.of(("not", name), self.uniform[name])
            self.opposites[name] = other
            self.opposites[other] = name
        return other

    def agreed(self, facts: Mapping[int, bool]) -> dict[int, bool]:
        """The facts on which all threads of a block agree; of opposites, that of the first."""
        found: dict[int, bool] = {}
        for name, truth in facts.items():
            if self.uniform[name]:
                other = self.opposites.get(name, name)
                found[min(name, other)] = truth if name <= other else not truth
        return found

    def of(self, key: tuple[object, ...], uniform: bool) -> int:
        """The name of an expression; `uniform` if all threads of a block agree on it."""
        name = self.known.get(key)
        if name is None:
            name = self.known[key] = len(self.uniform)
            self.uniform.append(uniform)
            self.keys.append(key)
        return name

    def combine(self, operation: str, parts: tuple[Value, ...]) -> int | None:
        """The name of an operation's result, if every operand has a name or is one number."""
        key: list[object] = [operation]
        uniform = True
        for part in parts:
            if part.name is not None:
                key.append(part.name)
                uniform = uniform and self.uniform[part.name]
            elif isinstance(part.number, int) and not part.bases:
                key.append((part.number,))
            else:
                return None
        return self.of(tuple(key), uniform)

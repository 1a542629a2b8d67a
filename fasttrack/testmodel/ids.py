# SPDX-License-Identifier: Apache-2.0
"""The ids that pytest gives to sets of parameters."""

from collections import Counter, defaultdict
from collections.abc import Sequence

from fasttrack.testmodel.values import Class, Function, Instance, Opaque, Value

_CONTROLS = {"\t": "\\t", "\r": "\\r", "\n": "\\n"}
_LONG = 100
"""Characters of a text above which pytest counts instead."""


def ids_of(
    argnames: Sequence[str], sets: Sequence[tuple[tuple[Value, ...], Value]], ids: Value
) -> list[str]:
    """Ids of the sets of one parametrisation, made different from each other.

    Args:
        argnames: names of the parameters.
        sets: values and own id of each set.
        ids: what `ids=` says: a sequence, or None.
    """
    listed = ids if isinstance(ids, list | tuple) else ()
    found: list[str] = []
    for index, (values, own) in enumerate(sets):
        given = listed[index] if index < len(listed) else None
        if isinstance(own, str):
            found.append(_escaped(own))
        elif given is not None:
            name = _from_value(given)
            found.append(f"?{index}" if name is None else name)
        else:
            found.append("-".join(_id(v, a, index) for v, a in zip(values, argnames, strict=False)))
    return _distinct(found)


def _id(value: Value, argname: str, index: int) -> str:
    if isinstance(value, str | bytes) and len(value) > _LONG:
        return f"{argname}{index}"
    name = _from_value(value)
    return f"{argname}{index}" if name is None else name


def _from_value(value: Value) -> str | None:
    match value:
        case str() | bytes():
            return _escaped(value)
        case None | bool() | int() | float() | complex():
            return str(value)
        case Function() | Class():
            return value.name
        case Instance(kind=Class() as kind) if "name" in value.names and "value" in value.names:
            return f"{kind.name}.{value.names['name']}"
        case Opaque(words=text, external=True):
            return text.rpartition(".")[2] if text[:1].islower() else None
        case _:
            return None


def _escaped(value: str | bytes) -> str:
    if isinstance(value, bytes):
        text = value.decode("ascii", "backslashreplace")
    else:
        text = value.encode("unicode_escape").decode("ascii")
    return "".join(c if 32 <= ord(c) < 127 else _CONTROLS.get(c, f"\\x{ord(c):02x}") for c in text)


def _distinct(found: Sequence[str]) -> list[str]:
    """Equal ids get a number at their end, as pytest counts."""
    result = list(found)
    counts = Counter(result)
    suffixes: dict[str, int] = defaultdict(int)
    for index, name in enumerate(result):
        if counts[name] > 1:
            sign = "_" if name and name[-1].isdigit() else ""
            made = f"{name}{sign}{suffixes[name]}"
            while made in set(result):
                suffixes[name] += 1
                made = f"{name}{sign}{suffixes[name]}"
            result[index] = made
            suffixes[name] += 1
    return result

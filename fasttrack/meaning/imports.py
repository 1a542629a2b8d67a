# SPDX-License-Identifier: Apache-2.0
"""What a module brings in from others and defines itself, by its text, without parsing it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_FROM = re.compile(r"\n[ \t]*+from[ \t]++(\.*)[ \t]*([\w.]*)[ \t]+import[ \t]*(\([^()]*\)|[^\n;]*)")
_IMPORT = re.compile(r"\n[ \t]*+import[ \t]+([^\n;]+)")
_NAMED = re.compile(r"([\w.]+|\*)(?:\s+as\s+(\w+))?\s*\Z")
_ALIAS = re.compile(
    r"\n(\w++)[ \t]*(?::[^=\n]*)?=[ \t]*([A-Za-z_][\w.]*)[ \t]*(?:#[^\n]*)?(?=\n|\Z)"
)
_DEFINED = re.compile(r"\n(?:async[ \t]+def|def|class)[ \t]+(\w+)")
_ASSIGNED = re.compile(r"\n(\w++)[ \t]*(?::[^=\n]*)?=(?!=)")
_CONTAINER = re.compile(
    r"\n(\w++)[ \t]*(?::[^=\n]*)?=[ \t]*(?:[\[{]|(?:\w+\.)*"
    r"(?:dict|list|set|defaultdict|OrderedDict|deque|Counter|WeakValueDictionary)[(\[])"
)
_COMMENT = re.compile(r"#[^\n]*")


Imported = tuple[str, int, str, str]
"""Module, leading dots, member (empty for the module itself) and the name that is bound."""


@dataclass(frozen=True)
class Exports:
    """The names of a module.

    Attributes:
        imported: name to module, leading dots and member; an empty member for a module itself.
        stars: modules, with leading dots, that all names are taken from.
        defined: functions, classes and assigned names.
        containers: names that are assigned a list, dictionary or set.
        plain: names that are a function or class, and never assigned.
    """

    imported: Mapping[str, tuple[str, int, str]]
    stars: tuple[tuple[str, int], ...]
    defined: frozenset[str]
    containers: frozenset[str]
    plain: frozenset[str]


def exports_of(source: str) -> Exports:
    """The names that the text of a module binds at its top, as far as patterns can tell."""
    source = f"\n{source}"
    imported: dict[str, tuple[str, int, str]] = {}
    stars = []
    for module, level, member, name in imports_in(source):
        if member == "*":
            stars.append((module, level))
        else:
            imported[name] = (module, level, member)
    for name, value in _ALIAS.findall(source):
        first, _, rest = value.partition(".")
        if first in imported and name not in imported:
            module, level, member = imported[first]
            imported[name] = (module, level, ".".join(filter(None, (member, rest))))
    defined, assigned = _DEFINED.findall(source), _ASSIGNED.findall(source)
    plain = frozenset(defined).difference(assigned, imported)
    containers = frozenset(_CONTAINER.findall(source))
    return Exports(imported, tuple(stars), frozenset([*defined, *assigned]), containers, plain)


def imports_in(source: str) -> Iterator[Imported]:
    """Module, leading dots, member and bound name of every import statement at a line's start."""
    source = f"\n{source}"
    for dots, module, names in _FROM.findall(source):
        for member, alias in _names(names):
            yield module, len(dots), member, alias or member
    for names in _IMPORT.findall(source):
        for name, alias in _names(names):
            top = name if alias else name.partition(".")[0]
            yield top, 0, "", alias or top


def statements_in(source: str) -> Iterator[tuple[int, int]]:
    """Where import statements at a line's start begin and end."""
    for pattern in (_FROM, _IMPORT):
        yield from ((m.start() - 1, m.end() - 1) for m in pattern.finditer(f"\n{source}"))


def _names(text: str) -> Iterator[tuple[str, str]]:
    if "#" in text:
        text = _COMMENT.sub("", text)
    for part in text.strip("()\r ").replace("\\\n", " ").split(","):
        found = _NAMED.match(part.strip())
        if found is not None:
            yield found[1], found[2] or ""

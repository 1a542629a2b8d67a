# SPDX-License-Identifier: Apache-2.0
"""The looks through the text of one tree's modules, and what these lend to each other.

What is foreign in a file depends on what the own modules lend that it imports from, and these on
what they import. So the looks ask each other, each module once, and not in circles.
"""

import gc
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial

from fasttrack.errors import FactUnavailable
from fasttrack.meaning.around import Around
from fasttrack.meaning.imports import Imported
from fasttrack.meaning.modules import Modules
from fasttrack.meaning.pieces import Sketch
from fasttrack.meaning.reachable import NOT_FOLLOWED
from fasttrack.meaning.reexports import REEXPORTS_LIMIT, Reexports
from fasttrack.meaning.sketch import Look
from fasttrack.meaning.texts import KEPT_CHARACTERS, Texts

Meant = tuple[str, str, str, str | None, bool]
"""Absolute name of a module, member, bound name, file, and whether all of it may be used."""
DEPTH_LIMIT = 2
"""Modules that are looked at one because of the other: as many as are read so."""
LOOKS_LIMIT = 60
"""Own modules around the changed files that are looked at; of others nobody knows anything."""
PASSING = frozenset(
    {
        "partial", "nullcontext", "copy", "deepcopy", "chain", "islice", "SimpleNamespace",
        "reduce", "cache", "lru_cache", "wraps", "itemgetter", "attrgetter", "methodcaller",
        "cast", "deque", "defaultdict", "OrderedDict", "namedtuple",
    }
)  # fmt: skip
"""Functions of the standard library that hand on what they are given, if others re-export them."""

_TYPING = frozenset({"typing", "typing_extensions"})
_FORMS = frozenset(
    {
        "Any", "Annotated", "Callable", "ClassVar", "Concatenate", "Final", "Literal",
        "LiteralString", "Never", "NoReturn", "NotRequired", "Optional", "ParamSpec", "Required",
        "Self", "TYPE_CHECKING", "TypeAlias", "TypeGuard", "TypeVar", "Union", "Unpack",
        "overload", "override",
    }
)  # fmt: skip
"""Names of `typing` that stand in types: what mentions one holds nothing that matters."""


class Looks:
    """The looks through the modules of one tree, each made once."""

    def __init__(
        self,
        modules: Modules,
        reexports: Reexports,
        text_of: Callable[[str], str],
        texts: Texts,
    ) -> None:
        """Takes the names of files, what they hand on, and their texts, as `Project` does."""
        self._modules = modules
        self._texts = texts
        self._reexports = reexports
        self._text_of = text_of
        self._looks: dict[str, Look | None] = {}
        self._sources: dict[tuple[str, str], tuple[str | None, bool]] = {}
        self._meant: dict[str, tuple[Iterable[Imported], list[Meant]]] = {}
        self._lending: list[str] = []
        self._depths: dict[str, int] = {}
        self._cut: set[str] = set()
        self._kept = 0
        self._handed: set[tuple[str, str]] = set()

    def touches(self, path: str, first: int, last: int) -> bool:
        """Whether some lines of a file can change something; see `Look.touches`."""
        look = self._looks.get(path)
        return look is None or look.touches(first, last)

    def matters(self, path: str, name: str) -> bool:
        """Whether a name of a module can hold or change something foreign."""
        with suppress(FactUnavailable):
            look = self.look(path)
            return look is None or look.lends(name) or (path, name) in self._handed
        return False

    def sketch(self, path: str, source: str | None = None) -> Sketch | None:
        """The part of a file that can have an effect; None when nothing can.

        Args:
            path: the file.
            source: its text, where it is not that of the tree.

        Raises:
            FactUnavailable: the file can not be read.
        """
        text = self._text_of(path) if source is None else source
        if self._kept > KEPT_CHARACTERS:
            self._looks.clear()
            gc.collect()  # parts of a look refer to each other
            self._kept = 0
        look = self._looks.get(path)
        if look is None or look.source != text or self._is_cut_short(path, 0):
            self._begin(path, 0)
            self._looks[path] = look = self._look_at(path, text)
        look.take(self._lent_stirring(path, look))
        return look.reduced() if look.hits or look.whole else None

    def lending(self, path: str) -> Sketch | None:
        """The part of a module that others may import something from; None while it is looked at.

        Raises:
            FactUnavailable: the file can not be read.
        """
        look = self.look(path)
        if look is None:
            return None
        look.take(self._lent_stirring(path, look))
        return look.reduced(lending=True)

    def look(self, path: str) -> Look | None:
        """A look through a module that others import from; none while one is on its way.

        Of what it imports itself only the names are followed, not what they can do: otherwise one
        changed file would have the whole package looked through.
        """
        depth = len(self._lending)
        if path not in self._looks and len(self._looks) >= LOOKS_LIMIT:
            return None
        if path not in self._looks or self._is_cut_short(path, depth):
            self._begin(path, depth)
            self._looks[path] = None
            self._looks[path] = self._look_at(path, self._text_of(path))
        return self._looks[path]

    def _is_cut_short(self, path: str, depth: int) -> bool:
        """Whether a look was made from further away, and less far than one from here would go."""
        return path in self._cut and depth < self._depths[path]

    def _begin(self, path: str, depth: int) -> None:
        self._depths[path] = depth
        self._cut.discard(path)

    def _look_at(self, path: str, text: str) -> Look:
        self._kept += len(text)
        around = Around(
            partial(self._lent_names, path),
            partial(self._foreign, path),
            partial(self._makers, path),
            partial(self._plain, path),
        )
        return Look(self._texts.of(text), around)

    def _makers(self, path: str, imports: Iterable[Imported]) -> frozenset[str]:
        """Names of modules whose functions hand nothing through; see `Around`."""
        return frozenset(
            name for module, member, name, source, _ in self._meant_by(path, imports)
            if (member or name) not in PASSING
            and module.partition(".")[0] not in sys.stdlib_module_names
            and not self._modules.is_own(source)
        )  # fmt: skip

    def _plain(self, path: str, imports: Iterable[Imported]) -> frozenset[str]:
        """Names of classes and functions of own modules; see `Around`."""
        return frozenset(
            name for source, member, name in self._sources_of(path, imports)
            if member and self._modules.is_own(source) and self._reexports.is_plain(source, member)
        )  # fmt: skip

    def _foreign(self, path: str, imports: Iterable[Imported]) -> dict[str, int]:
        """Imported names and attributes that may be foreign; see `Around`."""
        found: dict[str, int] = {}
        for absolute, member, name, origin, all_of_it in self._meant_by(path, imports):
            if not absolute:
                continue
            source, last, every = self._whence(origin, member, all_of_it)
            if source is None or not self._modules.is_own(source):
                is_form = absolute in _TYPING and member in _FORMS
                found.setdefault(name, NOT_FOLLOWED if is_form else 0)
                continue
            lent = self._lent_by(source)
            if lent is None or ("*" in lent and last != "*"):
                found.setdefault(name, 0)
                continue
            for key, high in lent.items():
                if key[0] == "." or last == "*":
                    found[key] = max(high, found.get(key, 0))
                elif every:
                    found[f".{key}"] = max(high, found.get(f".{key}", 0))
                elif key == last:
                    found[name] = max(high, found.get(name, 0))
        return found

    def _whence(self, source: str | None, member: str, every: bool) -> tuple[str | None, str, bool]:
        """File and member that an import is of in the end, and whether all of it may be used."""
        if source is None or member in {"", "*"} or every:
            return source, member, every
        return self._origin(source, member)

    def _origin(self, path: str, member: str) -> tuple[str | None, str, bool]:
        """Where a member of an own module is from in the end, as `_source` tells it."""
        for _ in range(REEXPORTS_LIMIT):
            target = self._reexports.target(path, member) if self._modules.is_own(path) else None
            if target is None:
                break
            owner, _, last = target.rpartition(".")
            source, every = self._source(owner, last)
            if source is None or every:
                return source, last, every
            path, member = source, last
        return path, member, False

    def _lent_by(self, path: str) -> Mapping[str, int] | None:
        """What an own module lends; None when nobody can tell now, nothing from too far away."""
        if path in self._lending:
            return None
        if len(self._lending) >= DEPTH_LIMIT:
            self._cut.update(self._lending)
            return {}
        self._lending.append(path)
        try:
            look = self.look(path)
            lent = None if look is None else look.lent
        except FactUnavailable:
            lent = {}
        finally:
            self._lending.pop()
        if path in self._cut:
            self._cut.update(self._lending)
        return lent

    def _lent_names(
        self, path: str, imports: Iterable[Imported], words: frozenset[str]
    ) -> Iterator[str]:
        """What other modules of the repository lend to a file; see `Around`."""
        for source, member, name in self._sources_of(path, imports):
            if member:
                yield from self._reexports.known(source, member, name)
            else:
                yield from self._reexports.known_among(source, words)

    def _lent_stirring(self, path: str, look: Look) -> set[str]:
        """Names by which a file has functions of own modules that change what they are given."""
        sources = list(self._sources_of(path, look.imports))
        own = [s for s in sources if self._modules.is_own(s[0])]
        whole = [source for source, member, _ in own if not member]
        stirring = {
            name: (source, member) for source, member, name in own
            if member and name in look.words and member in self.stirring(source)
        }  # fmt: skip
        found = look.handed(stirring)
        self._handed.update(stirring[name] for name in found)
        shared = {s[2]: s for s in sources if s[1] and not self._modules.is_own(s[0])}
        for name in look.handed(shared):
            if shared[name][1] in self.stirring(shared[name][0]):
                found.add(name)
        for source in whole if look.hands else ():
            found |= self.stirring(source)
            self._handed.update((source, name) for name in self.stirring(source))
        return found & look.words

    def _sources_of(self, path: str, imports: Iterable[Imported]) -> Iterator[tuple[str, str, str]]:
        """File, member and bound name of imports; no member where all of the file may be used."""
        for _, member, name, source, every in self._meant_by(path, imports):
            if source is not None:
                yield source, "" if every else member, name

    def _meant_by(self, path: str, imports: Iterable[Imported]) -> list[Meant]:
        """What the imports of a file mean, found out once."""
        known = self._meant.get(path)
        if known is None or known[0] is not imports:
            meant = []
            for module, level, member, name in imports:
                absolute = self._modules.absolute(path, module, level) if level else module
                meant.append((absolute, member, name, *self._source(absolute, member)))
            self._meant[path] = known = (imports, meant)
        return known[1]

    def _source(self, module: str, member: str) -> tuple[str | None, bool]:
        """The file that an import is from, and whether all that it has may be used."""
        key = (module, member)
        if key not in self._sources:
            source = self._modules.path_of(module)
            below = self._modules.path_of(f"{module}.{member}") if member else source
            self._sources[key] = (source, member == "*") if below is None else (below, True)
        return self._sources[key]

    def stirring(self, path: str) -> frozenset[str]:
        """The functions of a module that can change what they are given."""
        with suppress(FactUnavailable):
            look = self.look(path)
            return look.stirring if look is not None else frozenset()
        return frozenset()

# SPDX-License-Identifier: Apache-2.0
"""What a file of tests takes from other files, found in its bytes: most are never parsed.

An import by statement tells the file that it means. Where a file may import in another way, or says
`import` in a place that is no statement of a known form, nothing is concluded from its statements.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

_STATEMENT = re.compile(
    rb"^[ \t]*(?:from[ \t]+(?P<module>[.\w]+)[ \t]+import[ \t]*+"
    rb"(?P<names>\((?:[^()#]++|#[^\n]*+)*\)|[^\s(][^\n(]*+)|import[ \t]+(?P<modules>[^\n]+))",
    re.MULTILINE,
)
_IMPORT = re.compile(rb"\bimport\b(?:[ \t]*\((?:[^()#]++|#[^\n]*+)*)?")
_OTHERWISE = (
    b"importlib", b"__import__", b"import_module", b"pytest_plugins", b"runpy", b"sys.modules",
)  # fmt: skip
"""What a file says that imports by something else than a statement."""
_RUNS = re.compile(rb"(?<![.\w])(?:exec|eval)\s*\(")
_CODING = re.compile(rb"\A(?:[^\n]*\n)?[^#\n]*#[^\n]*coding[:=][ \t]*+(?!(?i:utf[-_]?8\b))")
_RETURN = re.compile(rb"\r(?!\n)")
_SPEAKS = (b"#", b">>>")
"""What begins a line that is no statement, whatever it says."""
_CAN_IMPORT = re.compile(rb"[:;]$|\bfrom\b")
"""What stands before an `import` that may be a statement: another one, or what it imports from."""
_COMMENT = re.compile(rb"#[^\n]*")
_ALIAS = re.compile(rb"([\w.*]+)(?:\s+as\s+\w+)?")


@dataclass(frozen=True)
class Found:
    """What statements of a file take.

    Attributes:
        places: modules as paths without ending, and the name that is taken; empty for none.
        unclear: lines with imports of another form.
    """

    places: tuple[tuple[str, str], ...]
    unclear: bytes


@dataclass(frozen=True)
class Taken:
    """The imports of one file.

    Attributes:
        path: the file.
        blob: its bytes.
    """

    path: str
    blob: bytes

    def may_hide(self, module: bytes) -> bool:
        """Whether it may import a module of some name by something else than a known statement.

        It would say that name: in the statement, or as a text that ends a dotted name or a path.
        """
        if self._is_odd or module in self._found.unclear:
            return True
        if not any(word in self.blob for word in _OTHERWISE) and not _RUNS.search(self.blob):
            return False
        said = rb"""["'][\w./:{}]{,99}(?<!\w)%s(?:[./:][\w./:{}]{,99})?["']""" % re.escape(module)
        return bool(re.search(said, self.blob))

    @property
    def _is_odd(self) -> bool:
        """Whether its ends of lines or its encoding make its bytes another text than they seem."""
        returns = b"\r" in self.blob and _RETURN.search(self.blob)
        return bool(returns or _CODING.match(self.blob))

    def of(self, helper: str) -> frozenset[str] | None:
        """Names that it takes from a file of tests; None for the whole module, or all of them."""
        wanted = stem_of(helper)
        found: set[str] = set()
        for stem, name in self._found.places:
            whole = name in {"", "*"}
            if self._means(stem, wanted) and whole:
                return None
            if not whole and self._means(f"{stem.rstrip('/')}/{name}", wanted):
                return None
            if self._means(stem, wanted):
                found.add(name)
        return frozenset(found)

    def _means(self, stem: str, wanted: str) -> bool:
        """Whether a place that an import names may be a file: exactly, or as the end of its path.

        The search path is not known; a relative import is spelled out from the root on, with a
        slash before it.
        """
        if stem.startswith("/"):
            return stem[1:] == wanted
        return bool(stem) and f"/{wanted}".endswith(f"/{stem}")

    @cached_property
    def _found(self) -> "Found":
        """What its statements take, and lines that may take something in another form."""
        places: list[tuple[str, str]] = []
        unclear: list[bytes] = []
        end = 0
        for match in _STATEMENT.finditer(self.blob):
            unclear += self._others(end, match.start())
            end = match.end()
            names = _listed(match["modules"] or match["names"])
            if names is None:
                unclear.append(self.blob[match.start() : self._end(match.end())])
            elif match["modules"]:
                places += ((part, "") for name in names for part in _parents(name))
            else:
                stem = self._stem(match["module"].decode())
                places += ((stem, name) for name in names)
        unclear += self._others(end, len(self.blob))
        return Found(tuple(places), b"\n".join(unclear))

    def _others(self, start: int, end: int) -> Iterator[bytes]:
        """Lines between two statements that say `import` where it may be one."""
        for match in _IMPORT.finditer(self.blob, start, end):
            first = self.blob.rfind(b"\n", 0, match.start()) + 1
            before = self.blob[first : match.start()].strip().removeprefix(b"\xef\xbb\xbf")
            goes_on = _goes_on(self.blob, first - 1)
            while _goes_on(self.blob, first - 1):
                first = self.blob.rfind(b"\n", 0, first - 1) + 1
            may = goes_on or not before or _CAN_IMPORT.search(before)
            if may and not before.startswith(_SPEAKS):
                yield self.blob[first : self._end(match.end())]

    def _end(self, place: int) -> int:
        """Where the line of a place ends, with those that it goes on in."""
        end = self.blob.find(b"\n", place)
        while _goes_on(self.blob, end):
            end = self.blob.find(b"\n", end + 1)
        return end if end >= 0 else len(self.blob)

    def _stem(self, module: str) -> str:
        """A module as a path without ending, from the root on where it is relative."""
        name = module.lstrip(".")
        level = len(module) - len(name)
        tail = name.replace(".", "/")
        if not level:
            return tail
        folders = self.path.split("/")[:-1]
        folders = folders[: max(0, len(folders) - (level - 1))]
        return "/" + "/".join([*folders, *([tail] if tail else [])])


def _goes_on(blob: bytes, end: int) -> bool:
    """Whether a line that ends at a place goes on in the next one."""
    return end > 0 and blob[max(0, end - 2) : end].rstrip(b"\r").endswith(b"\\")


def stem_of(path: str) -> str:
    """A file as the place that an import names: a package is its folder."""
    return path.removesuffix(".py").removesuffix("/__init__")


def _listed(text: bytes) -> tuple[str, ...] | None:
    """The names of an import statement without their aliases; None for another form."""
    plain = _COMMENT.sub(b"", text).strip()
    if plain.startswith(b"("):
        plain = plain.strip(b"() \t\r\n")
    names: list[str] = []
    for part in filter(None, (part.strip() for part in plain.split(b","))):
        match = _ALIAS.fullmatch(part)
        if match is None:
            return None
        names.append(match[1].decode("ascii", "replace"))
    return tuple(names)


def _parents(name: str) -> Iterator[str]:
    """`a.b.c` and the packages that its import binds, as paths."""
    parts = name.split(".")
    yield from ("/".join(parts[:end]) for end in range(1, len(parts) + 1))

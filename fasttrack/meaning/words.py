# SPDX-License-Identifier: Apache-2.0
"""Words of which an effect needs one, made from the tables in `known`."""

from collections.abc import Set
from functools import cache

from fasttrack.meaning import known

TEXT_RUN = frozenset({"open", "compile", "eval"})
"""Words that count where no dot stands before them."""
ALWAYS = frozenset(
    [
        "setattr",
        "delattr",
        "__dict__",
        "__base__",
        "__bases__",
        "__mro__",
        "vars",
        "globals",
        "locals",
        "exec",
        "__import__",
        "import_module",
        "reload",
        "__builtins__",
        "builtins",
        "setitem",
        "delitem",
        "iadd",
        "ior",
        "iconcat",
        "methodcaller",
        "update_wrapper",
        "__setattr__",
        "__delattr__",
        "__setitem__",
        "__delitem__",
        "MonkeyPatch",
        "__subclasses__",
        "__globals__",
        "__code__",
        "__defaults__",
        "__kwdefaults__",
        "_getframe",
        "f_globals",
        "f_locals",
        "setLevel",
        "addHandler",
        "removeHandler",
        "addFilter",
        "removeFilter",
        "py_impl",
        "insort",
        "insort_left",
        "insort_right",
        "heappush",
        "heappop",
        "heapify",
        "heapreplace",
        "shuffle",
        "copyto",
        "exec_module",
        "load_module",
        "enter_context",
        "locate",
        "resolve_name",
    ]
)
"""Words that always need a look."""
TELLING = frozenset({"environ", "_dynamo", "_inductor", "_functorch", "backends", "_C", "nccl"})
"""Parts of known names that say more than the last part does."""


def is_known(dotted: str) -> bool:
    """Whether a dotted name is in the tables of `known`, or one that leads there."""
    if dotted in _LEADING:
        return True
    while dotted := dotted.rpartition(".")[0]:
        if f"{dotted}.*" in _LEADING:
            return True
    return False


def is_registering(word: str) -> bool:
    """Whether a word names a function that registers something."""
    return "register" in word and known.REGISTERS.match(word) is not None


def _parts(row: str) -> list[str]:
    return row.split(".")


_HANDLED = (
    "builtins.* io.* codecs.* gzip.* bz2.* lzma.* importlib.* operator.* pathlib.* threading.*"
    " unittest.mock.* mock.* torch.library.*"
)
"""Modules with functions that the reader knows beyond the tables."""
_ROWS = " ".join([*known.CALLS.values(), known.MODULES, known.ENVIRONMENT, known.HOOKS]).split()
_LEADING = frozenset(
    ".".join(parts[: end + 1])
    for parts in map(
        _parts, [*_ROWS, *known.SETTINGS.split(), *known.OPERATORS.split(), *_HANDLED.split()]
    )
    for end in range(len(parts))
)


def _by_root() -> dict[str, frozenset[str]]:
    words: dict[str, set[str]] = {}
    for row in _ROWS:
        first, *rest = row.split(".")
        telling = [part for part in rest if part in TELLING]
        last = rest[-1] if rest else first
        word = telling[0] if telling else rest[-2] if last == "*" and rest[1:] else last
        words.setdefault(first, set()).add(first if word == "*" else word)
    words["pathlib"] = {*known.PATH_WRITES, "open"}
    words["torch"] |= {"library", "__enter__"}
    words["builtins"].add("open")
    words["unittest"] = words["mock"] = {"patch"}
    words["threading"].add("start")
    return {root: frozenset(found) for root, found in words.items()}


ROOTS = _by_root()
"""First part of every known name to words of which every use of it has one."""


def words_below(roots: Set[str]) -> frozenset[str]:
    """The words that uses of some first parts need."""
    return _words_below(frozenset(roots))


@cache
def _words_below(roots: frozenset[str]) -> frozenset[str]:
    return frozenset().union(*(ROOTS[root] for root in roots))


_BETWEEN = {code: " " for code in range(128) if not (chr(code).isalnum() or chr(code) == "_")}


def words_of(text: str) -> frozenset[str]:
    """The words of a text; what is no letter of English counts as part of one."""
    return frozenset(text.translate(_BETWEEN).split())

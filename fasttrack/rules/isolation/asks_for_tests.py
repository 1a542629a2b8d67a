# SPDX-License-Identifier: Apache-2.0
"""FT224: code of the path does not know whether it is tested."""

import ast
import posixpath
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import cache

from fasttrack.case import Case
from fasttrack.change.tree import Entry, Side
from fasttrack.errors import FactUnavailable
from fasttrack.finding import Finding, Level
from fasttrack.meaning.modules import modules_of
from fasttrack.meaning.source import is_regular, parsed, source_of
from fasttrack.policy.model import PathClass
from fasttrack.rules.base import EntryRule
from fasttrack.rules.isolation.new_imports import changed_python, new_imports

_SPEAKS = ("pytest", "PYTEST_", "py.test", "unittest", "hypothesis")
_SPEAKING = re.compile(
    r"[\"'}](?:_?pytest|py\.test|PYTEST_|unittest|hypothesis)"
    r"|(?:\bfrom|\bimport|,)[\s\\(]*+(?:_?pytest|hypothesis)\b"
)
"""A text that begins so, or an import: of other words `_SPEAKS` makes too much."""
_STATEMENT = re.compile(r"[\n;:][ \t]*+(?:from|import)\b(?:[^\n(]*+\([^)]*+\)|[^\n]*+)")
"""An import, as far as its names go."""
_COMPUTED = ("import_module", "__import__")
_RUNNER = re.compile(r"_?pytest(\.\w+)*|py\.test|PYTEST_\w+")
"""Texts that only who asks for pytest has."""
_LIBRARY = re.compile(r"(unittest|hypothesis)(\.\w+)*")
"""Texts that are also words of other trades: they count where loaded modules are asked for."""
_WHERE = frozenset({"modules", "argv", "orig_argv", "find_spec"})
_IMPORTED = frozenset({"pytest", "_pytest", "hypothesis"})
_TEST_NAME = re.compile(r"(test_.*|.*_test|conftest)\.py")


class AsksForTests(EntryRule):
    """Governed code that looks for a test runner, or imports tests or the reference."""

    id = "FT224"
    slug = "asks-for-tests"
    title = "code of the path does not know whether it is tested"
    level = Level.ROUTE
    refuses = (
        "A changed Python file in the roots, no test, that newly asks for a test runner (a text "
        "such as `pytest` or `PYTEST_CURRENT_TEST`; `unittest` or `hypothesis` among loaded "
        "modules or program arguments; an import of `pytest` or `hypothesis`), or that newly "
        "imports a path of class `tests` or `reference`, or a module with the name of a test."
    )
    why = (
        "A kernel that knows its test can give the reference's answer there and another one when "
        "it serves. No test can see that."
    )
    blind = (
        "Texts that are put together from parts, signs of a test other than its runner (the time, "
        "the shape of inputs, who calls), and a reference that is copied into the path."
    )
    fix = "compute the same whoever calls; keep the reference and helpers of tests outside the path"

    def entries(self, case: Case) -> Iterator[Entry]:
        """Changed Python files in the roots that are no tests."""
        for entry in filter(changed_python, case.governed_entries()):
            if not _is_test(case, entry.path):
                yield entry

    def check_entry(self, case: Case, entry: Entry) -> Iterator[Finding]:
        """One finding for each new question, and one for each new import."""
        before = Counter(word for word, _ in _questions(case, entry.old))
        for word, line in _questions(case, entry.new):
            before[word] -= 1
            if before[word] < 0:
                saw = f"governed code asks for `{word}`"
                want = "code that computes the same whether or not it is tested"
                yield self.finding(path=entry.path, line=line, saw=saw, want=want)
        if _may_import(case, entry):
            yield from self._imports(case, entry)

    def _imports(self, case: Case, entry: Entry) -> Iterator[Finding]:
        manifest = case.head.governing(entry.path)
        if manifest is None:
            return
        told: set[int] = set()
        for one, path in new_imports(case, entry, modules_of(case, manifest)):
            kind = "a test" if _is_test(case, path) else "the reference"
            judges = kind == "a test" or case.path_class(path) is PathClass.REFERENCE
            if judges and not one.type_checking and one.line not in told:
                told.add(one.line)
                saw = f"governed code imports `{path}`, {kind}"
                want = "code that does not hold what it is compared with"
                yield self.finding(path=entry.path, line=one.line, saw=saw, want=want)


def _may_import(case: Case, entry: Entry) -> bool:
    """Whether an import of a file names a path of tests or of the reference: cheap."""
    words = case.once(_judging_words)
    try:
        source = source_of(case, entry.new)
    except FactUnavailable:
        return False
    if not any(word in source for word in words):
        return False
    if any(name in source for name in _COMPUTED) and _literal(words).search(source):
        return True
    joined = source.replace("\\\n", " ")
    statements = _STATEMENT.findall(f"\n{joined}")
    return any(word in statement for statement in statements for word in words)


@cache
def _literal(words: tuple[str, ...]) -> re.Pattern[str]:
    """A text that may name a module with one of some words in its name."""
    return re.compile(rf"[\"'][\w.]*(?:{'|'.join(map(re.escape, words))})[\w.]*[\"']")


def _judging_words(case: Case) -> tuple[str, ...]:
    """Words of which every import of a test or of the reference has one."""
    judging = {PathClass.TESTS, PathClass.REFERENCE}
    rows = [row for row in case.policy.paths if row.path_class in judging]
    return ("test_", "_test", "conftest", *(_plain(p) for row in rows for p in row.match))


def _plain(pattern: str) -> str:
    """The longest plain word at the end of a pattern; empty if there is none."""
    parts = pattern.removesuffix(".py").split("/")
    words = [max(re.findall(r"\w+", part), key=len, default="") for part in parts]
    return next((word for word in reversed(words) if word), "")


def _is_test(case: Case, path: str) -> bool:
    named = _TEST_NAME.fullmatch(posixpath.basename(path)) is not None
    return named or case.path_class(path) is PathClass.TESTS


def _questions(case: Case, side: Side) -> list[tuple[str, int]]:
    """What one side of a file asks for, with its lines; FT219 tells where it can not be read."""
    with suppress(FactUnavailable):
        if is_regular(side) and _speaks(source_of(case, side)):
            return sorted(_asked(parsed(case, side)), key=lambda found: found[1])
    return []


def _speaks(source: str) -> bool:
    return any(word in source for word in _SPEAKS) and _SPEAKING.search(source) is not None


def _asked(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if _RUNNER.fullmatch(text):
                yield text, node.lineno
            case ast.Compare() | ast.Subscript() | ast.Call() if _looks_there(node):
                for text in _texts(node):
                    yield text, node.lineno
            case ast.Import(names=names):
                for alias in names:
                    if alias.name.partition(".")[0] in _IMPORTED:
                        yield alias.name, node.lineno
            case ast.ImportFrom(module=str(module), level=0):
                if module.partition(".")[0] in _IMPORTED:
                    yield module, node.lineno


def _looks_there(node: ast.Compare | ast.Subscript | ast.Call) -> bool:
    """Whether loaded modules or the program's arguments are looked at."""
    names = (n for n in ast.walk(node) if isinstance(n, ast.Name | ast.Attribute))
    return any((n.attr if isinstance(n, ast.Attribute) else n.id) in _WHERE for n in names)


def _texts(node: ast.Compare | ast.Subscript | ast.Call) -> Iterator[str]:
    """The libraries of tests that such an expression names itself."""
    match node:
        case ast.Compare():
            parts = [node.left, *node.comparators]
        case ast.Subscript():
            parts = [node.slice]
        case ast.Call():
            parts = node.args
    for part in parts:
        text = part.value if isinstance(part, ast.Constant) else None
        if isinstance(text, str) and _LIBRARY.fullmatch(text):
            yield text

# SPDX-License-Identifier: Apache-2.0
"""Why a deleted file of tests may be no loss, for a person to see.

Who makes one file of two leaves out tests that the other has already; who deletes code deletes its
tests. The text does not tell either from a loss for certain.
"""

from fasttrack.case import Case
from fasttrack.errors import FactUnavailable
from fasttrack.meaning.imports import exports_of
from fasttrack.meaning.source import source_of
from fasttrack.testmodel.collected import Test
from fasttrack.testmodel.likeness import body_of
from fasttrack.testmodel.reach import Reach, is_plain_test
from fasttrack.testmodel.replaced import Replacements, paths_of
from fasttrack.testmodel.texts import words_of


def is_merged(reach: Reach, base: Test) -> bool:
    """Whether a test's file is gone, and edited or new tests speak of all governed names of it."""
    if base.path in reach.head:
        return False
    used = words_of(body_of(base)) & _governed_names(reach, base.path)
    return bool(used) and used <= words_of(_standing(reach))


def speaks_of_gone_code(reach: Reach, text: str) -> bool:
    """Whether a text names a class or function of a module of the program that is deleted."""
    return not words_of(text).isdisjoint(reach.case.once(_gone_names))


def _gone_names(case: Case) -> frozenset[str]:
    """Names that deleted modules of the program define, and no longer are in their package."""
    reach = case.once(Reach)
    gone = [e for e in case.entries if e.deleted and e.path.endswith(".py")]
    texts = (_text(reach, e.path, base=True) for e in gone if not reach.is_tests(e.path))
    found = frozenset(name for text in texts for name in exports_of(text).defined)
    kept = (_text(reach, e.path, base=False) for e in case.entries if not e.deleted)
    still = frozenset(name for text in kept for name in exports_of(text).defined)
    return frozenset(name for name in found - still if len(name) > 4)


def goes_with_code(reach: Reach, base: Test) -> bool:
    """Whether a test speaks of deleted code, or its file is gone with a module it imports from."""
    if speaks_of_gone_code(reach, body_of(base)):
        return True
    if base.path in reach.head:
        return False
    gone = {entry.path for entry in reach.case.entries if entry.deleted}
    imported = exports_of(_text(reach, base.path, base=True)).imported.values()
    stems = (f"{module}.{member}".rstrip(".") for module, level, member in imported if not level)
    return any(
        path in gone and not is_plain_test(path)
        for stem in stems
        for name in (stem, stem.rpartition(".")[0])
        for path in paths_of(name)
    )


def _governed_names(reach: Reach, path: str) -> frozenset[str]:
    """Names that a file of tests imports from inside the roots."""
    replacements = Replacements(reach)
    imported = exports_of(_text(reach, path, base=True)).imported
    return frozenset(
        name
        for name, (module, level, member) in imported.items()
        if not level and replacements.governed(f"{module}.{member}".rstrip("."))
    )


def _standing(reach: Reach) -> str:
    paths = (*reach.edited, *reach.added)
    return "\n".join(_text(reach, path, base=False) for path in paths if path in reach.head)


def _text(reach: Reach, path: str, *, base: bool) -> str:
    side = (reach.base if base else reach.head).get(path)
    try:
        return "" if side is None else source_of(reach.case, side)
    except FactUnavailable:
        return ""

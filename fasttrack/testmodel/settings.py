# SPDX-License-Identifier: Apache-2.0
"""Settings of pytest in ini files: which names are tests, and what is left out of every run."""

import configparser
import re
import shlex
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from fasttrack.errors import FactUnavailable

INI_FILES: Mapping[str, str] = {
    "pytest.ini": "pytest", ".pytest.ini": "pytest", "pyproject.toml": "tool.pytest.ini_options",
    "tox.ini": "pytest", "setup.cfg": "tool:pytest",
}  # fmt: skip
"""Files in the order in which pytest looks for them, and the section that counts."""
RERUNS = "--reruns"
"""The option of a plug-in that runs a failing test again until it passes."""
INI_LIMIT = 256 * 1024
"""Characters of such a file that is parsed."""
_LEAVING_OUT = ("-k", "-m", "--ignore", "--ignore-glob", "--deselect", RERUNS)
_RUNNING_NONE = frozenset({
    "--collect-only", "--co", "--setup-only", "--setup-plan", "--lf", "--last-failed", "--sw",
    "--stepwise", "--fixtures", "--markers",
})  # fmt: skip
"""Options after which not all tests run."""


@dataclass(frozen=True)
class Settings:
    """What counts of one ini file.

    Attributes:
        path: the file; empty for pytest's defaults.
        files: patterns of the names of test files.
        functions: prefixes or patterns of test functions.
        classes: prefixes or patterns of test classes.
        left_out: option and value, for each that leaves tests out.
        places: where pytest looks for tests; everywhere when empty.
    """

    path: str = ""
    files: tuple[str, ...] = ("test_*.py", "*_test.py")
    functions: tuple[str, ...] = ("test",)
    classes: tuple[str, ...] = ("Test",)
    left_out: tuple[tuple[str, str], ...] = ()
    places: tuple[str, ...] = ()

    def is_file(self, path: str) -> bool:
        """Whether pytest takes tests from a file of this name."""
        name = path.rpartition("/")[2]
        return any(fnmatchcase(name, pattern) for pattern in self.files)

    def is_function(self, name: str) -> bool:
        """Whether a function of this name is a test."""
        return _named(self.functions, name)

    def is_class(self, name: str) -> bool:
        """Whether a class of this name holds tests."""
        return _named(self.classes, name)

    def leaves_out(self, path: str, name: str, marks: Collection[str] = ()) -> str:
        """The option that certainly leaves a test with some marks out; empty when none does."""
        for option, value in self.left_out:
            plain = value.rstrip("/")
            hit = {
                "--ignore": path == plain or path.startswith(f"{plain}/"),
                "--ignore-glob": fnmatchcase(path, value),
                "--deselect": f"{path}::{name}".startswith(plain),
                "-k": not _expression_holds(
                    value, lambda t: t.lower() in f"{path}::{name}".lower()
                ),
                "-m": not _expression_holds(value, lambda t: t in marks),
            }
            if hit.get(option):
                return f"{option} {value}"
        return ""


def _named(patterns: Sequence[str], name: str) -> bool:
    for pattern in patterns:
        if name.startswith(pattern):
            return True
        if any(sign in pattern for sign in "*?[") and fnmatchcase(name, pattern):
            return True
    return False


def settings_of(folder: str, text_of: Callable[[str], str | None]) -> Settings:
    """The settings that the ini files of a folder give.

    Args:
        folder: the folder; empty or ending in `/`.
        text_of: the text of a path; None when there is no file.

    Raises:
        FactUnavailable: the file that counts can not be parsed.
    """
    for name, section in INI_FILES.items():
        text = text_of(f"{folder}{name}")
        if text is None:
            continue
        found = _section(f"{folder}{name}", text, section)
        if found is not None:
            return _settings(f"{folder}{name}", found)
    return Settings()


def _section(path: str, text: str, section: str) -> Mapping[str, str] | None:
    if len(text) > INI_LIMIT:
        raise FactUnavailable(f"{path} has {len(text):,} characters; {INI_LIMIT:,} are parsed")
    try:
        if path.endswith(".toml"):
            return _toml_section(text, section)
        parser = configparser.ConfigParser(interpolation=None, strict=False)
        parser.read_string(text)
    except (configparser.Error, tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise FactUnavailable(f"{path} can not be parsed as settings") from error
    if parser.has_section(section):
        return dict(parser.items(section))
    return {} if path.endswith("pytest.ini") else None


def _toml_section(text: str, section: str) -> Mapping[str, str] | None:
    if "pytest" not in text:
        return None
    found: object = tomllib.loads(text)
    for key in section.split("."):
        found = found.get(key) if isinstance(found, dict) else None
    if not isinstance(found, dict):
        return None
    return {
        key: "\n".join(map(str, value)) if isinstance(value, list) else str(value)
        for key, value in found.items()
    }


def _settings(path: str, found: Mapping[str, str]) -> Settings:
    def words(key: str, default: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(found[key].split()) if found.get(key, "").strip() else default

    plain = Settings()
    return Settings(
        path=path,
        files=words("python_files", plain.files),
        functions=words("python_functions", plain.functions),
        classes=words("python_classes", plain.classes),
        left_out=tuple(_left_out(found.get("addopts", ""))),
        places=words("testpaths", plain.places),
    )


def _left_out(options: str) -> list[tuple[str, str]]:
    try:
        parts = shlex.split(options, comments=False)
    except ValueError:
        parts = options.split()
    found: list[tuple[str, str]] = []
    for index, part in enumerate(parts):
        name, equals, value = part.partition("=")
        if name in _LEAVING_OUT:
            value = value if equals else " ".join(parts[index + 1 : index + 2])
            found.append((name, value))
        elif part in _RUNNING_NONE:
            found.append((part, ""))
        elif part.startswith(("-k", "-m")) and len(part) > 2 and not part.startswith("--"):
            found.append((part[:2], part[2:]))
    return found


_TOKEN = re.compile(r"\(|\)|[\w\[\]:./+-]+")


def _expression_holds(expression: str, says: Callable[[str], bool]) -> bool:
    """Whether a `-k` or `-m` expression selects a test; also when it is not understood."""
    tokens = _TOKEN.findall(expression)[:200]
    words = [
        token if token in {"(", ")", "and", "or", "not"} else str(says(token)) for token in tokens
    ]
    try:
        value, rest = _any_of(words)
    except (IndexError, ValueError):
        return True
    return value or bool(rest)


def _any_of(tokens: list[str]) -> tuple[bool, list[str]]:
    value, tokens = _all_of(tokens)
    while tokens and tokens[0] == "or":
        other, tokens = _all_of(tokens[1:])
        value = value or other
    return value, tokens


def _all_of(tokens: list[str]) -> tuple[bool, list[str]]:
    value, tokens = _one(tokens)
    while tokens and tokens[0] == "and":
        other, tokens = _one(tokens[1:])
        value = value and other
    return value, tokens


def _one(tokens: list[str]) -> tuple[bool, list[str]]:
    first, rest = tokens[0], tokens[1:]
    if first == "not":
        value, rest = _one(rest)
        return not value, rest
    if first == "(":
        value, rest = _any_of(rest)
        if not rest or rest[0] != ")":
            raise ValueError
        return value, rest[1:]
    if first in {")", "and", "or"}:
        raise ValueError
    return first == "True", rest

# SPDX-License-Identifier: Apache-2.0
"""JUnit XML to test outcomes: which test, how it ended, which properties it recorded.

Read as a stream. A document type is refused before anything in it is looked at, so entities do
not exist here; depth, tests and bytes are bounded. Elements that are not known are refused, as one
of them may say that a test failed and was tried again.
"""

from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

from fasttrack.errors import InputError
from fasttrack.evidence.importers.reading import MAX_FILE, Source

MAX_TESTS = 20_000
MAX_DEPTH = 16
OUTCOMES = ("passed", "xfailed", "skipped", "failed")
"""In rising order: of two reports about one test the worse one counts."""

_SUITES = ("testsuites", "testsuite")
_CHILDREN = frozenset(
    {"properties", "property", "system-out", "system-err", "skipped", "failure", "error"}
)
_COUNTED = {"tests": "testcase", "failures": "failure", "errors": "error"}
"""Attribute of a suite to the element that it counts."""
_Attributes = dict[str, str]


@dataclass
class Test:
    """One test.

    Attributes:
        node: its id as pytest prints it.
        outcome: one of `OUTCOMES`.
        properties: name and value, as the test recorded them.
    """

    __test__ = False  # not a test of pytest's

    node: str
    outcome: str = "passed"
    properties: list[tuple[str, str]] = field(default_factory=list)

    def worsen(self, outcome: str) -> None:
        """Takes another report about the test."""
        self.outcome = max(self.outcome, outcome, key=OUTCOMES.index)


def read_tests(source: Source) -> list[Test]:
    """The tests of one file, in its order; one that is reported twice is there twice.

    Raises:
        InputError: no JUnit XML, hostile XML, a file that lost a part, or a suite that could not
            be collected.
    """
    if len(source.raw) > MAX_FILE:
        raise InputError.one(source.name, f"{len(source.raw):,} bytes", f"at most {MAX_FILE:,}")
    reader = _Reader(source.name)
    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = reader.doctype
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    try:
        parser.Parse(source.raw, True)
    except (expat.ExpatError, ValueError, LookupError) as error:  # also unknown encodings
        raise InputError.one(source.name, str(error)[:200], "well-formed XML") from error
    return reader.tests


def node_id(attributes: _Attributes) -> str:
    """The id of a test as pytest prints it: `file::Class::name`.

    Without a `file` (pytest's default) it is worked out from `classname`: trailing names that
    begin with a capital are classes, the rest is the module. A wrong guess names no test that
    anything asks for, and so covers nothing.
    """
    dotted, name = attributes.get("classname", ""), attributes.get("name", "")
    file = attributes.get("file", "").replace("\\", "/").removeprefix("./")
    parts = [part for part in dotted.split(".") if part]
    if file:
        module = [part for part in file.removesuffix(".py").split("/") if part]
        classes = parts[len(module) :] if parts[: len(module)] == module else []
    else:
        cut = len(parts)
        while cut and parts[cut - 1][0].isupper():
            cut -= 1
        classes = parts[cut:]
        file = "/".join(parts[:cut]) + ".py" if cut else ""
    return "::".join([*([file] if file else []), *classes, name])


class _Reader:
    """Handlers of one parse."""

    def __init__(self, source: str) -> None:
        self.tests: list[Test] = []
        self._source = source
        self._open: list[str] = []
        self._counts: list[tuple[_Attributes, dict[str, int]]] = []
        self._unnamed = False

    def doctype(self, *_: Any) -> None:
        """Refuses any document type."""
        raise self._fault("a document type", "XML without one")

    def start(self, tag: str, attributes: _Attributes) -> None:
        """An element begins."""
        self._open.append(tag)
        if len(self._open) > MAX_DEPTH:
            raise self._fault(f"elements {MAX_DEPTH} deep", "fewer")
        if len(self._open) == 1 and tag not in _SUITES:
            raise self._fault(f"<{tag[:40]}>", "<testsuites> or <testsuite>")
        if tag in _SUITES:
            self._counts.append((attributes, dict.fromkeys(_COUNTED.values(), 0)))
        elif "testcase" in self._open[:-1]:
            self._inside(tag, attributes)
        elif tag == "testcase":
            self._test(attributes)
        elif tag not in _CHILDREN:
            raise self._fault(f"<{tag[:40]}>", "elements of JUnit XML")
        for _, counts in self._counts:
            if tag in counts:
                counts[tag] += 1

    def end(self, tag: str) -> None:
        """An element ends."""
        self._open.pop()
        if tag not in _SUITES:
            return
        attributes, counts = self._counts.pop()
        for name, element in _COUNTED.items():
            declared = attributes.get(name, "0")
            if not declared.isdecimal() or int(declared[:12]) > counts[element]:
                saw = f'{name}="{declared[:40]}" and {counts[element]} <{element}>'
                raise self._fault(saw, "a file that holds what it counts")

    def _test(self, attributes: _Attributes) -> None:
        if len(self.tests) == MAX_TESTS:
            raise self._fault(f"more than {MAX_TESTS:,} tests", "fewer; import them in parts")
        self._unnamed = not attributes.get("classname")
        self.tests.append(Test(node_id(attributes)))

    def _inside(self, tag: str, attributes: _Attributes) -> None:
        if tag not in _CHILDREN:
            raise self._fault(f"<{tag[:40]}> in a test", "an outcome that pytest writes")
        test = self.tests[-1]
        if tag == "property":
            test.properties.append((attributes.get("name", ""), attributes.get("value", "")))
        elif tag == "error" and self._unnamed:
            saw = f"'{test.node[:80]}', which could not be collected"
            raise self._fault(saw, "a run that collected every test")
        elif tag in {"failure", "error"}:
            test.worsen("failed")
        elif tag == "skipped":
            test.worsen("xfailed" if attributes.get("type") == "pytest.xfail" else "skipped")

    def _fault(self, saw: str, want: str) -> InputError:
        return InputError.one(self._source, saw, want)

# SPDX-License-Identifier: Apache-2.0
"""Parser events to values with their places; what readers take apart is refused."""

import re
from typing import cast

import yaml

from fasttrack.strict_yaml.document import Mark, Node
from fasttrack.strict_yaml.plain import Ambiguous, Scalar, read_plain, shown
from fasttrack.strict_yaml.text import REFUSED_CHARACTER, Problems

try:
    from yaml import CSafeLoader as _Loader
except ImportError:  # libyaml is missing: slower, the same events
    from yaml import SafeLoader as _Loader  # type: ignore[assignment]

MAX_DEPTH = 32
"""Deepest nesting of lists and mappings."""
MAX_VALUES = 100_000
"""Most values of one document; bounds memory to about 100 MB."""
MAX_STRING = 16_384
"""Longest string, in characters."""
MAX_KEY = 256
"""Longest key, in characters; readers differ above 1024."""

_REFUSED_IN_VALUE = re.compile(f"(?!\t)(?:{REFUSED_CHARACTER.pattern})")
_BLOCK_HEADER = re.compile(r"[|>][-+]?(?: +#[^\r]*| *)\r?")
_AFTER_KEY = re.compile(r" *:(?:[ \r]|$)")
_YAML = "YAML made of `key: value` and `- item` lines, indented by spaces"


class Composer:
    """Parser events to nodes; depth is bounded, so recursion is."""

    def __init__(self, text: str, problems: Problems) -> None:
        self._events = yaml.parse(text, Loader=_Loader)
        self._lines = text.split("\n")
        self._problems = problems
        self._values = 0
        self._flow = 0

    def document(self) -> Node | None:
        """The root of the only document, or None when there is none.

        Raises:
            UnreadableError: when the text can not be read on; the reason is noted.
        """
        self._next()  # start of the stream
        start = self._next()
        if isinstance(start, yaml.StreamEndEvent):
            self._problems.add((1, 1), "an empty document", "at least one `key: value`")
            return None
        self._check_document_start(start)
        root = self._node(self._next(), 1)
        end = self._next()
        if getattr(end, "explicit", False):
            self._problems.add(_start(end), "the line `...`", "the end of the file")
        after = self._next()
        if not isinstance(after, yaml.StreamEndEvent):
            raise self._problems.stop(_start(after), "a second document", "one document per file")
        return root

    def _next(self) -> yaml.Event:
        try:
            return next(self._events)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            place = (mark.line + 1, mark.column + 1) if mark else (1, 1)
            raise self._problems.stop(place, f"no YAML: {error.problem}", _YAML) from None
        except (yaml.YAMLError, ValueError) as error:
            # ValueError: the loader without libyaml turns the escape `\UFFFFFFFF` into chr()
            raise self._problems.stop((1, 1), f"no YAML: {error}", _YAML) from None

    def _check_document_start(self, start: yaml.Event) -> None:
        end = cast("yaml.Mark", start.end_mark)
        if any(line.startswith("%") for line in self._lines[: end.line + 1]):
            fix = "remove the lines that start with `%`"
            self._problems.add(_start(start), "a `%` directive", "plain YAML", fix)

    def _node(self, event: yaml.Event, depth: int) -> Node:
        self._values += 1
        if self._values > MAX_VALUES:
            saw = f"more than {MAX_VALUES} values"
            raise self._problems.stop(_start(event), saw, f"at most {MAX_VALUES} values")
        if depth > MAX_DEPTH and isinstance(event, yaml.CollectionStartEvent):
            saw = f"nesting deeper than {MAX_DEPTH} levels"
            raise self._problems.stop(_start(event), saw, f"at most {MAX_DEPTH} levels")
        if isinstance(event, yaml.AliasEvent):
            saw = f"the alias `*{shown(str(event.anchor))}`"
            self._problems.add(_start(event), saw, "the value itself", "write the value out")
            return Node(None, _start(event))
        self._check_properties(event)
        if not isinstance(event, yaml.CollectionStartEvent):
            return Node(self._scalar(event), _start(event))
        self._flow += bool(event.flow_style)
        is_list = isinstance(event, yaml.SequenceStartEvent)
        node = self._sequence(event, depth) if is_list else self._mapping(event, depth)
        self._flow -= bool(event.flow_style)
        return node

    def _check_properties(self, event: yaml.Event) -> None:
        anchor, tag = getattr(event, "anchor", None), getattr(event, "tag", None)
        if anchor is not None:
            saw, fix = f"the anchor `&{shown(anchor)}`", "remove it and write repeated values out"
            self._problems.add(_start(event), saw, "no anchors", fix)
        if tag is not None:
            saw = f"the tag `{shown(tag)}`"
            self._problems.add(_start(event), saw, "no tags", "remove the tag; quote text")

    def _sequence(self, start: yaml.Event, depth: int) -> Node:
        children: list[Node] = []
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            children.append(self._node(event, depth + 1))
        if not children:
            want = "at least one item; an empty list is an error, never `any`"
            self._problems.add(_start(start), "an empty list", want, "remove the key, or fill it")
        return Node([child.value for child in children], _start(start), children=children)

    def _mapping(self, start: yaml.Event, depth: int) -> Node:
        children: dict[str, Node] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            key = self._key(event, depth)
            if key in children:
                saw = f"the key `{shown(key)}` again; it is already at line {_line(children[key])}"
                self._problems.add(_start(event), saw, "each key once")
            child = self._node(self._next(), depth + 1)
            child.key = _start(event)
            if key is not None:
                children.setdefault(key, child)
        data = {key: child.value for key, child in children.items()}
        return Node(data, _start(start), children=children)

    def _key(self, event: yaml.Event, depth: int) -> str | None:
        """The key, or None with a problem noted; a collection used as key is read over."""
        mark = _start(event)
        if not isinstance(event, yaml.ScalarEvent):
            self._problems.add(mark, "a key that is not a scalar", "text as key")
            self._node(event, depth + 1)
            return None
        if not event.style and event.value == "<<":
            fix = "write the keys out"
            self._problems.add(mark, "the merge key `<<`", "the merged keys themselves", fix)
            return None
        if len(event.value) > MAX_KEY or not _is_one_line(event):
            self._problems.add(mark, "a long key", f"one line of at most {MAX_KEY} characters")
            return None
        before, after = self._around(event)
        if before.endswith("?") or not _AFTER_KEY.match(after):
            saw = f"`{shown(event.value)}` without `: ` after it, or with `?` before it"
            self._problems.add(mark, saw, "`key: value`")
        self._check_properties(event)
        known = len(self._problems.found)
        key = self._scalar(event)
        if isinstance(key, str):
            return key
        if len(self._problems.found) == known:
            saw = f"`{shown(event.value)}` as key, which is not text"
            self._problems.add(mark, saw, "text as key", f'quote it: "{shown(event.value)}"')
        return None

    def _scalar(self, event: yaml.Event) -> Scalar:
        value, style = str(getattr(event, "value", "")), getattr(event, "style", None)
        mark = _start(event)
        if len(value) > MAX_STRING:
            saw = f"text of {len(value)} characters"
            self._problems.add(mark, saw, f"at most {MAX_STRING} characters")
            return None
        if not style:
            return self._plain(value, mark)
        if style in ("|", ">"):
            self._check_block(value, mark)
        refused = _REFUSED_IN_VALUE.search(value)
        if refused:
            saw = f"an escape for U+{ord(refused[0]):04X}"
            self._problems.add(mark, saw, "printable text, `\\n` and `\\t`")
        return value

    def _plain(self, value: str, mark: Mark) -> Scalar:
        read = read_plain(value)
        if isinstance(read, Ambiguous):
            self._problems.add(mark, read.saw, read.want, read.fix)
            return None
        if self._flow and "?" in value:
            saw, fix = "`?` without quotes inside brackets", f'quote it: "{shown(value)}"'
            self._problems.add(mark, saw, "a value that every reader accepts", fix)
        return read

    def _check_block(self, value: str, mark: Mark) -> None:
        """Readers disagree on indicators of indentation and on text that starts blank."""
        header = self._lines[mark[0] - 1][mark[1] - 1 :]
        first = self._lines[mark[0]] if mark[0] < len(self._lines) else ""
        if not _BLOCK_HEADER.fullmatch(header):
            self._problems.add(mark, f"`{shown(header)}`", "`|` or `>`, with `-` or `+` at most")
        elif not first.strip() or not value.strip():
            self._problems.add(mark, "block text that starts blank", "text on the next line")

    def _around(self, event: yaml.ScalarEvent) -> tuple[str, str]:
        """The rest of the line before a scalar and after it."""
        start, end = cast("yaml.Mark", event.start_mark), cast("yaml.Mark", event.end_mark)
        line = self._lines[start.line]
        return line[: start.column].rstrip(), line[end.column :]


def _start(event: yaml.Event) -> Mark:
    mark = cast("yaml.Mark", event.start_mark)  # None only in events that no parser made
    return mark.line + 1, mark.column + 1


def _is_one_line(event: yaml.ScalarEvent) -> bool:
    start, end = cast("yaml.Mark", event.start_mark), cast("yaml.Mark", event.end_mark)
    return start.line == end.line


def _line(node: Node) -> int:
    return (node.key or node.mark)[0]

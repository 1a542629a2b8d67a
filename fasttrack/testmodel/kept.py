# SPDX-License-Identifier: Apache-2.0
"""What a test writes to a file and reads again: it is what was written, and no expected data."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fasttrack.testmodel.values import Value, words

if TYPE_CHECKING:
    from fasttrack.testmodel.follower import Follower

_METHODS = frozenset({"write_text", "write_bytes"})
_TO_A_FILE = frozenset({"dump", "save_file"})
"""Functions that take the content first; `save` of torch does, that of numpy takes it last."""
WRITING = _METHODS | _TO_A_FILE | {"save", "savez", "savetxt"}
READING = frozenset({"read_text", "read_bytes", "load", "load_file", "loadtxt"})
_OPENED = re.compile(r"^open\((.*?)(?:, .*)?\)$|^(.*)\.open\(.*\)$")


def through_file(f: "Follower", name: str, args: Sequence[Value]) -> Value:
    """What reading a file gives that the test has written; None for other calls and files."""
    owner, _, last = name.rpartition(".")
    if last in _METHODS and args:
        f.written[owner] = args[0]
    elif last in WRITING and len(args) > 1:
        first = last in _TO_A_FILE or owner == "torch"
        place, content = (args[1], args[0]) if first else (args[0], args[1])
        f.written[_file(words(place))] = content
    elif last in READING:
        place = owner if last.startswith("read_") else _file(words(args[0])) if args else ""
        return f.written.get(place)
    return None


def _file(text: str) -> str:
    """The path in the words of an open file."""
    found = _OPENED.match(text)
    return next(filter(None, found.groups()), text) if found else text

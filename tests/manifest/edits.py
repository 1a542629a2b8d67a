# SPDX-License-Identifier: Apache-2.0
"""Data-driven cases that edit the text of the valid manifest."""

from typing import Any

import yaml

from .builders import CASES, VALID


def cases(name: str) -> list[dict[str, Any]]:
    loaded: list[dict[str, Any]] = yaml.safe_load((CASES / name).read_text(encoding="utf-8"))
    return loaded


def edited(edits: list[dict[str, str]]) -> str:
    """The valid manifest with the first occurrence of each `from` replaced by its `to`."""
    text = VALID
    for edit in edits:
        assert edit["from"] in text, f"{edit['from']!r} is not in valid.yaml"
        text = text.replace(edit["from"], edit["to"], 1)
    return text


def place(text: str, part: str) -> str:
    """`line:column` of a part of the text."""
    offset = text.index(part)
    before = text[:offset]
    return f"{before.count(chr(10)) + 1}:{offset - before.rfind(chr(10))}"

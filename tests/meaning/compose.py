# SPDX-License-Identifier: Apache-2.0
"""Fills the markers of templates, and puts pieces of a Python file together."""

import re
from collections.abc import Callable, Mapping
from typing import Any

_MARK = re.compile(r"<([A-Za-z]+|\.attr)>")
Way = Mapping[str, Any]
"""One disguise as a template: `imports`, `code` and what else `disguises.yaml` says."""
_ACTING = re.compile(r"^( *)<(?:stmt|call):(.*)>$", re.MULTILINE)
_KEPT = re.compile(r"\bKEPT\b|\bKept\b")
_ACT = re.compile(r"<(stmt|call|f|args):([^<>]*)>")


def filled(template: str, marks: Mapping[str, str], effect: Mapping[str, Any] | None = None) -> str:
    """A template with its markers replaced; several lines take the indentation of the marker's.

    Args:
        template: text with `<...>` markers; an unknown one is an error.
        marks: markers to what stands for them.
        effect: fields `stmt` and `call` of an effect, for the markers that act on an object.
    """
    text = "\n".join(_line(line, _MARK, lambda m: marks[m[1]]) for line in template.split("\n"))
    if effect is None:
        return text
    return "\n".join(
        _line(line, _ACT, lambda m: _acted(effect, m[1], m[2])) for line in text.split("\n")
    )


def joined(*pieces: str) -> str:
    """Pieces of a file, two blank lines between them, empty ones left out."""
    return "\n\n\n".join(piece.strip("\n") for piece in pieces if piece.strip()) + "\n"


def composed(outer: Way, inner: Way) -> Way:
    """A disguise that acts, on the expression by which another one reaches the object.

    Args:
        outer: acts on `<X>`.
        inner: reaches the object, and acts on an expression of its own in one line.
    """
    line = _ACTING.search(inner["code"])
    assert line is not None
    acting = outer["code"].replace("<X>", line[2]).rstrip("\n")
    indented = re.sub(r"^(?=.)", line[1], acting, flags=re.MULTILINE)
    imports = outer["imports"].replace("<IMPORT>", "")
    return {
        **inner,
        "imports": inner["imports"] + imports,
        "code": inner["code"].replace(line[0], indented),
        "call": outer.get("call", ""),
    }


def nested(outer: Way, inner: Way) -> Way:
    """A disguise that carries, of the value that another one has carried.

    Args:
        outer: carries `<E>` inside one file, under names of its own.
        inner: gives an expression for a value; its names are marked as the inner ones.
    """
    kept = {
        key: _KEPT.sub(r"inner_\g<0>", inner.get(key, "")) for key in ("imports", "code", "value")
    }
    files = {path: _KEPT.sub(r"inner_\g<0>", text) for path, text in inner["files"].items()}
    return {
        "files": files,
        "imports": kept["imports"] + outer.get("imports", ""),
        "code": joined(kept["code"], outer["code"].replace("<E>", kept["value"])),
        "value": outer["value"],
    }


def without_repeats(imports: str) -> str:
    """Import lines, each once and without blank lines."""
    return "\n".join(dict.fromkeys(line for line in imports.split("\n") if line)) + "\n"


def _line(line: str, marker: re.Pattern[str], value: Callable[[re.Match[str]], str]) -> str:
    indent = line[: len(line) - len(line.lstrip())]
    return marker.sub(lambda m: value(m).replace("\n", "\n" + indent), line)


def _acted(effect: Mapping[str, Any], kind: str, target: str) -> str:
    """An effect on the object that an expression spells."""
    if kind == "stmt":
        return str(effect["stmt"]).strip("\n").replace("<X>", target)
    function, arguments = (str(part).replace("<X>", target) for part in effect["call"])
    if kind == "call":
        return f"{function}({arguments})"
    return function if kind == "f" else arguments

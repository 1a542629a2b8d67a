# SPDX-License-Identifier: Apache-2.0
"""Files that configure evaluations: numbers that are lower than before."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import yaml

from fasttrack.case import Case
from fasttrack.change.tree import Entry
from fasttrack.errors import FactUnavailable
from fasttrack.meaning.source import is_regular
from fasttrack.policy.model import PathClass
from fasttrack.testmodel.known import SAMPLES, THRESHOLDS

CONFIG_LIMIT = 64 * 1024
"""Characters of a file that is parsed; lists of evaluations take a few thousand."""
LEAVES_LIMIT = 2000
_EVAL_PATH = re.compile(r"eval|lm_|gsm8k|accuracy|correctness|benchmark", re.I)
_ENDINGS = (".yaml", ".yml", ".json")


@dataclass(frozen=True)
class Bar:
    """A number that an evaluation must reach or look at, and that is lower than before."""

    path: str
    key: str
    old: float
    new: float


def lowered_bars(case: Case) -> Iterator[Bar]:
    """The numbers that a change lowers in files that configure evaluations."""
    for entry in case.entries:
        if _is_config(case, entry):
            old, new = _numbers(case, entry, old=True), _numbers(case, entry, old=False)
            for key, before in old.items():
                after = new.get(key)
                if after is not None and after < before:
                    yield Bar(entry.path, key, before, after)


def _is_config(case: Case, entry: Entry) -> bool:
    return (
        entry.modified
        and entry.path.endswith(_ENDINGS)
        and bool(_EVAL_PATH.search(entry.path))
        and case.path_class(entry.path) is PathClass.TESTS
        and is_regular(entry.old)
        and is_regular(entry.new)
    )


def _numbers(case: Case, entry: Entry, *, old: bool) -> Mapping[str, float]:
    """Numbers under keys that say how much or how good; none for what can not be parsed."""
    text = case.change.text(entry.old if old else entry.new)
    if len(text) > CONFIG_LIMIT or "&" in text:
        raise FactUnavailable(f"{entry.path} is too large or has anchors")
    try:
        data = json.loads(text) if entry.path.endswith(".json") else _yaml(text)
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        raise FactUnavailable(f"{entry.path} can not be parsed") from error
    return dict(_leaves(data))


def _yaml(text: str) -> object:
    return yaml.load(text, Loader=yaml.CSafeLoader)


def _leaves(data: object) -> Iterator[tuple[str, float]]:
    stack: list[tuple[str, object]] = [("", data)]
    for _ in range(LEAVES_LIMIT):
        if not stack:
            return
        where, value = stack.pop()
        last = where.rpartition(".")[2]
        if isinstance(value, dict):
            name = value.get("name")
            inside = f"{where}.{name}" if isinstance(name, str) else where
            stack += [(f"{inside}.{key}", item) for key, item in value.items()]
        elif isinstance(value, list):
            stack += [(f"{where}{_position(i, item)}", item) for i, item in enumerate(value)]
        elif isinstance(value, int | float) and last in SAMPLES | THRESHOLDS:
            yield where.lstrip("."), float(value)


def _position(index: int, item: object) -> str:
    """A place in a list that an insertion before it does not move, where the item has a name."""
    return "" if isinstance(item, dict) and "name" in item else f".{index}"

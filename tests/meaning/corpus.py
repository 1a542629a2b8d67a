# SPDX-License-Identifier: Apache-2.0
"""The corpus that is a product: effects x disguises, each with an honest twin, made from data.

`tests/cases/meaning/` holds the host project, the effects and the disguises; its files say what
their fields and markers mean. A cell is one change of the host project: a base and what becomes of
some of its files. Nothing is judged or run here.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from .compose import Way, composed, filled, joined, nested, without_repeats

FOLDER = Path(__file__).parent.parent / "cases" / "meaning"
KERNELS = "host/fast/kernels.py"
PLAIN_VALUE: Way = {"value": "<E>"}
PLAIN_CHECK: Way = {
    "imports": "<FROM>\n",
    "check": "<FUNC>(got, want, <KEY>=<E>, <OTHER>)\n",
}
HUB = '"""One place that names what others build on."""\n\nimport <module> as <slot>\n'
Files = Mapping[str, str]


@dataclass(frozen=True)
class Effect:
    """One thing that a change can do.

    Attributes:
        name: what it does, in words.
        family: how its disguises are written: `action`, `value` or `check`.
        rules: ids of the rules that may answer for it.
        data: its fields in `effects.yaml`.
    """

    name: str
    family: str
    rules: frozenset[str]
    data: Mapping[str, Any]


@dataclass(frozen=True)
class Cell:
    """One effect in one disguise, or the honest twin of both.

    Attributes:
        effect: what the change does.
        disguise: how it is dressed.
        honest: the twin, which has no effect on anything foreign and weakens nothing.
    """

    effect: Effect
    disguise: str
    honest: bool = False

    @property
    def name(self) -> str:
        """The cell in words."""
        return f"{self.effect.name} / {self.disguise}{' / honest' if self.honest else ''}"

    @property
    def twin(self) -> "Cell":
        """The same constructs, put to an honest use."""
        return replace(self, honest=True)


@dataclass(frozen=True)
class Made:
    """A cell as a change.

    Attributes:
        base: all files before it.
        change: the files that differ afterwards.
        module: what to import to see it, where an import shows it.
        call: what to call after the import for the effect to show; empty when the import does.
    """

    base: Files
    change: Files
    module: str = ""
    call: str = ""

    @property
    def head(self) -> Files:
        """All files after it."""
        return {**self.base, **self.change}


def effects() -> tuple[Effect, ...]:
    """All effects, in the order of their file."""
    return tuple(
        Effect(name, data["family"], frozenset(data["rules"]), data)
        for name, data in _data("effects.yaml").items()
    )


def disguises() -> tuple[str, ...]:
    """The names of all disguises, in the order of their file."""
    return tuple(_data("disguises.yaml"))


def cells() -> Iterator[Cell]:
    """Every cell of the product, without the twins."""
    for effect in effects():
        yield from cells_of(effect)


def cells_of(effect: Effect) -> Iterator[Cell]:
    """The cells of one effect: all disguises that are written for it, or those that it names."""
    ways = _data("disguises.yaml")
    for disguise in effect.data.get("only", ways):
        way = ways[disguise]
        if len(way) > 1 or (effect.family in way and _shows_outside(effect)):
            yield Cell(effect, disguise)


def unseen(cell: Cell) -> str:
    """Words for why no reader of the text sees a cell; empty where one can."""
    way = _way(cell, cell.effect.family)
    return str(cell.effect.data.get("unseen") or way.get("unseen", ""))


def _shows_outside(effect: Effect) -> bool:
    """Whether an import leaves something behind that an effect is seen by, outside the roots."""
    state = effect.data.get("state", "in sys.modules")
    return "in sys.modules" not in state and "file" not in effect.data


def pairs() -> Iterator[Cell]:
    """Cells in two disguises at once: reached or carried in one way, and acted on in another.

    Effects that need ways of their own, or that take few disguises, are left out.
    """
    for effect in effects():
        if effect.family != "check" and not {"ways", "only"} & set(effect.data):
            for outer, inner in _composable(effect.family):
                yield Cell(effect, f"{outer} of {inner}")


@cache
def project() -> Files:
    """The files of the honest host project."""
    names = ("shared", "own", "tests", "settings")
    return {path: text for name in names for path, text in _data(f"project/{name}.yaml").items()}


def made(cell: Cell) -> Made:
    """A cell as a change of the host project."""
    if cell.effect.family == "action":
        return _action(cell)
    return _carried(cell)


def _action(cell: Cell) -> Made:
    """Code under the roots that acts on an object."""
    data = dict(cell.effect.data)
    if cell.honest:
        ways = {**data.get("ways", {}), **data["own"].get("ways", {})}
        data = {**data, "bare": "", **data["own"], "ways": ways}
    way = data.get("ways", {}).get(cell.disguise) or _way(cell, "action")
    hub = "host.fast.own.hub" if cell.honest else "host.shared.hub"
    marks = _places(data, hub)
    imports, code = (filled(way.get(key, ""), marks, data) for key in ("imports", "code"))
    file = data.get("file", KERNELS)
    title, _, rest = project().get(file, "").partition("\n")
    text = joined(title, imports, data.get("prelude", ""), rest, code)
    beside = {filled(p, marks): filled(text, marks) for p, text in way.get("files", {}).items()}
    names = {f"{hub.replace('.', '/')}.py": filled(HUB, marks)}
    base = {**project(), **data.get("files", {}), **names}
    return Made(base, {**beside, file: text}, marks["this"], filled(way.get("call", ""), marks))


def _places(data: Mapping[str, Any], hub: str) -> Mapping[str, str]:
    """The markers that say where an object is."""
    module, attr = data["module"], data.get("attr", "")
    file = data.get("file", KERNELS)
    below = f".{attr}" if attr else ""
    parent, _, slot = module.rpartition(".")
    inside = data.get("from", False)
    return {
        "IMPORT": f"from {parent} import {slot}" if inside else f"import {module}",
        "module": module,
        ".attr": below,
        "X": data.get("bare") or f"{slot if inside else module}{below}",
        "hub": hub,
        "slot": slot,
        "tols": slot[::-1],
        "parent": parent,
        "folder": file.rpartition("/")[0],
        "this": _dotted(file),
    }


def _dotted(file: str) -> str:
    """The module that a file is."""
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _carried(cell: Cell) -> Made:
    """A test, or an oracle, that depends on a value or a tolerance which is carried to it."""
    data = {**cell.effect.data, **(cell.effect.data.get("own", {}) if cell.honest else {})}
    plain = PLAIN_VALUE if cell.effect.family == "value" else PLAIN_CHECK
    way = _way(cell, cell.effect.family)
    in_place = "tighter" in data if cell.honest else data.get("in_place", False)
    before = _written(data, way if in_place else plain, data["good"], data.get("function"))
    if not cell.honest:
        data = {**data, "body": data.get("bad_body", data["body"])}
    head = data.get("tighter", data["good"]) if cell.honest else data["bad"]
    function = (
        data.get("function") if cell.honest else data.get("bad_function", data.get("function"))
    )
    after = _written(data, way, head, function)
    more = {} if cell.honest else data.get("bad_files", {})
    base = {**project(), **data.get("files", {}), **before}
    return Made(base, {**after, **more}, _dotted(data["file"]))


def _written(
    data: Mapping[str, Any], way: Way, value: str, function: Mapping[str, str] | None
) -> dict[str, str]:
    """The file that is weakened, and those beside it, with one value carried one way."""
    folder = data["file"].rpartition("/")[0]
    uses = data.get("uses", "").strip()
    marks = {
        "E": value,
        "uses": uses,
        "folder": folder,
        "package": folder.replace("/", "."),
        "KEY": data.get("keyword", ""),
        "OTHER": data.get("other", ""),
    }
    if function:
        marks["FUNC"] = function["name"]
        marks["FROM"] = f"from {function['module']} import {function['name']}"
    beside = {filled(p, marks): filled(text, marks) for p, text in way.get("files", {}).items()}
    elsewhere = any("<E>" in text for text in way.get("files", {}).values())
    marks["V"] = filled(way.get("value", ""), marks)
    marks["CHECK"] = filled(way.get("check", ""), marks).rstrip("\n")
    imports = joined(
        data.get("imports", ""),
        "" if elsewhere else uses,
        filled(way.get("imports", ""), marks),
    )
    text = joined(
        without_repeats(imports),
        filled(way.get("code", ""), marks),
        filled(data["body"], marks),
    )
    return {**{path: joined(text) for path, text in beside.items()}, data["file"]: text}


def _way(cell: Cell, family: str) -> Way:
    """The template of a cell's disguise, or of its two disguises."""
    outer, _, inner = cell.disguise.partition(" of ")
    ways = _data("disguises.yaml")
    way: Way = ways[outer][family]
    if not inner:
        return way
    return (composed if family == "action" else nested)(way, ways[inner][family])


@cache
def _composable(family: str) -> tuple[tuple[str, str], ...]:
    """Disguises that take any expression, with those that end in an expression of their own."""
    ways = {name: way for name, way in _data("disguises.yaml").items() if len(way) > 1}
    takes = {name: _takes(way[family], family) for name, way in ways.items()}
    return tuple(
        (outer, inner) for outer in takes for inner in takes if takes[outer] > takes[inner]
    )


def _takes(way: Way, family: str) -> bool:
    return "<X>" in way["code"] if family == "action" else "files" not in way


@cache
def _data(name: str) -> Mapping[str, Any]:
    data = yaml.load((FOLDER / name).read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    assert isinstance(data, dict)
    return data

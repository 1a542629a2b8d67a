# SPDX-License-Identifier: Apache-2.0
"""The sample files of every format, and edits of them."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from fasttrack.evidence.importers import IMPORTERS
from fasttrack.evidence.importers.base import Files, Imported
from fasttrack.evidence.importers.reading import Source

SAMPLES = Path(__file__).parent / "samples"
Step = str | int


def sample(name: str) -> Source:
    """A sample file."""
    return Source(name, (SAMPLES / name).read_bytes())


@dataclass(frozen=True)
class Case:
    """Sample files of one format."""

    format: str
    results: tuple[str, ...]
    map: str
    facts: str
    baseline: tuple[str, ...] = ()

    def files(self) -> Files:
        results, baseline = map(sample, self.results), map(sample, self.baseline)
        return Files(list(results), list(baseline), sample(self.map), sample(self.facts))


CASES: Mapping[str, Case] = {
    "junit": Case("junit", ("junit-xunit2.xml",), "junit-map.yaml", "junit-facts.yaml"),
    "lm-eval": Case(
        "lm-eval",
        ("lm-eval-path.json",),
        "lm-eval-map.yaml",
        "eval-facts.yaml",
        ("lm-eval-baseline.json",),
    ),
    "inspect": Case(
        "inspect",
        ("inspect-path.json",),
        "inspect-map.yaml",
        "inspect-facts.yaml",
        ("inspect-baseline.json",),
    ),
    "vllm-bench": Case(
        "vllm-bench", ("vllm-bench-append.jsonl",), "vllm-bench-map.yaml", "bench-facts.yaml"
    ),
    "aiperf": Case(
        "aiperf",
        tuple(f"aiperf-path-{i}.json" for i in range(3)),
        "aiperf-map.yaml",
        "aiperf-facts.yaml",
        tuple(f"aiperf-baseline-{i}.json" for i in range(3)),
    ),
}


def files(format_: str, **changes: Any) -> Files:
    """The files of a format; `results`, `baseline`, `map` and `facts` may be others."""
    return replace(CASES[format_].files(), **changes)


def imported(format_: str, **changes: Any) -> Imported:
    """What importing them gives."""
    return IMPORTERS[format_](files(format_, **changes))


def edited_yaml(source: Source, edit: Callable[[Any], Any]) -> Source:
    """A map or sidecar after an edit of its data in place."""
    data = yaml.load(source.raw, Loader=yaml.CSafeLoader)
    edit(data)
    data = json.loads(json.dumps(data))  # without shared parts, which YAML would write as aliases
    text = yaml.dump(data, Dumper=yaml.CSafeDumper, sort_keys=False)
    return Source(source.name, text.encode())


def edited_json(source: Source, edit: Callable[[Any], Any]) -> Source:
    """A result file after an edit of its object in place; of every line's where there are many."""
    lines = source.raw.decode().strip().split("\n")
    objects = [json.loads(line) for line in lines] if source.name.endswith("l") else None
    if objects is None:
        one = json.loads(source.raw)
        edit(one)
        return Source(source.name, json.dumps(one).encode())
    edit(objects)
    return Source(source.name, "\n".join(json.dumps(o) for o in objects).encode())


def paths(data: Any, above: tuple[Step, ...] = ()) -> Iterator[tuple[Step, ...]]:
    """The path of everything inside a value, keys of mappings and indices of lists."""
    children = (
        data.items()
        if isinstance(data, dict)
        else enumerate(data)
        if isinstance(data, list)
        else ()
    )
    for step, child in children:
        yield (*above, step)
        yield from paths(child, (*above, step))


def at(data: Any, path: tuple[Step, ...]) -> Any:
    """The value at a path."""
    for step in path:
        data = data[step]
    return data


def without(path: tuple[Step, ...]) -> Callable[[Any], None]:
    """An edit that takes one thing out."""

    def edit(data: Any) -> None:
        del at(data, path[:-1])[path[-1]]

    return edit


def put(path: tuple[Step, ...], value: Any) -> Callable[[Any], None]:
    """An edit that puts a value at a path."""

    def edit(data: Any) -> None:
        at(data, path[:-1])[path[-1]] = value

    return edit

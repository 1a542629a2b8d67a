# SPDX-License-Identifier: Apache-2.0
"""The strict loader against cases, bounds, and two other readers of YAML."""

import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import ruamel.yaml
import yaml
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from fasttrack import strict_yaml
from fasttrack.errors import InputError, Problem
from fasttrack.strict_yaml import composer

CASES = Path(__file__).parent / "cases" / "strict_yaml"
LOADERS = [pytest.param(yaml.CSafeLoader, id="libyaml"), pytest.param(yaml.SafeLoader, id="python")]


def cases(name: str) -> list[Any]:
    rows = yaml.safe_load((CASES / name).read_text("utf-8"))
    return [pytest.param(row, id=row["why"]) for row in rows]


def problems_of(text: str | bytes) -> list[tuple[str, str]]:
    with pytest.raises(InputError) as caught:
        strict_yaml.parse(text, "m.yaml")
    return [(p.where.removeprefix("m.yaml:"), p.saw) for p in caught.value.problems]


def problems_if_any(text: str) -> tuple[Problem, ...]:
    try:
        strict_yaml.parse(text, "m.yaml")
    except InputError as error:
        return error.problems
    return ()


def exact(value: object) -> object:
    """A value with its types, so that 1, 1.0 and True differ and the order of keys counts."""
    if isinstance(value, dict):
        return [(exact(key), exact(item)) for key, item in value.items()]
    if isinstance(value, list):
        return ["list", *map(exact, value)]
    return (type(value).__name__, repr(value))


@pytest.mark.parametrize("case", cases("refused.yaml"))
def test_a_text_that_readers_take_apart_is_refused_at_its_place(case: dict[str, Any]) -> None:
    found = problems_of(case["text"])
    assert [where for where, _ in found] == [where for where, _ in case["problems"]]
    for (_, saw), (_, piece) in zip(found, case["problems"], strict=True):
        assert piece in saw


@pytest.mark.parametrize("case", cases("refused.yaml"))
def test_without_libyaml_the_same_texts_are_refused(
    case: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(composer, "_Loader", yaml.SafeLoader)
    assert problems_of(case["text"])


@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize("case", cases("accepted.yaml"))
def test_a_text_that_all_read_alike_is_accepted(
    case: dict[str, Any], loader: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(composer, "_Loader", loader)
    read = strict_yaml.parse(case["text"], "m.yaml").data
    assert exact(read) == exact(case["data"])
    assert exact(strict_yaml.parse(case["text"].encode(), "m.yaml").data) == exact(read)


@pytest.mark.parametrize(
    ("text", "where", "saw"),
    [
        (b"a: b\nc: \xff\n", "2:4", "0xff"),
        (b"\xef\xbb\xbfa: b\n", "1:1", "U+FEFF"),
        ("a: b\n".encode("utf-16"), "1:1", "0xff"),
        ("a: \ud800\n", "1:4", "0xed"),
    ],
)
def test_text_that_is_not_utf8_is_refused(text: str | bytes, where: str, saw: str) -> None:
    [(at, words)] = problems_of(text)
    assert at == where
    assert saw in words


def nested(depth: int) -> str:
    return "[" * depth + "a" + "]" * depth


@pytest.mark.parametrize(
    ("good", "bad", "saw"),
    [
        (nested(32), nested(33), "nesting deeper than 32 levels"),
        ("a" * 16_384, "a" * 16_385, "text of 16385 characters"),
        (f'"{"a" * 16_384}"', f'"{"a" * 16_385}"', "text of 16385 characters"),
        ("a" * 256 + ": b", "a" * 257 + ": b", "a long key"),
        ("- 1\n" * 99_999, "- 1\n" * 100_000, "more than 100000 values"),
        ("#" + "x" * (2**20 - 6) + "\na: b", "#" + "x" * (2**20 - 5) + "\na: b", "1048577 bytes"),
        (f"0.{'1' * 38}", f"0.{'1' * 39}", "a number of 41 characters"),
    ],
    ids=["depth", "plain", "quoted", "key", "values", "bytes", "number"],
)
def test_every_bound_holds_on_both_sides(good: str, bad: str, saw: str) -> None:
    strict_yaml.parse(good, "m.yaml")
    assert saw in problems_of(bad)[-1][1]


def test_at_most_a_hundred_problems_are_told() -> None:
    assert len(problems_of("- yes\n" * 99)) == 99
    assert len(problems_of("- yes\n" * 5000)) == 100
    assert len(problems_of("\t" * 5000)) == 100


HOSTILE = {
    "open brackets": "[" * 10**6,
    "open braces": "{a: " * 250_000,
    "dashes": "- " * 500_000,
    "question marks": "? " * 500_000,
    "an endless string": '"' + "a" * 10**6,
    "an endless plain scalar": "a " * 500_000,
    "anchors": "- &a b\n" * 140_000,
    "aliases of aliases": "a: &a [x]\n" + "".join(f"b{i}: [*a, *a]\n" for i in range(50_000)),
    "keys": "".join(f"k{i}: 1\n" for i in range(60_000)),
    "digits": "9" * 10**6,
    "blank lines": "\n" * 10**6,
    "tabs": "\t" * 10**6,
    "colons": ":" * 10**6,
    "nothing but NUL": "\0" * 10**6,
}


@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_text_ends_in_few_problems_and_bounded_memory(
    text: str, loader: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(composer, "_Loader", loader)
    if loader is yaml.SafeLoader:
        text = text[:60_000]  # the same paths; the parser without libyaml is slow
    tracemalloc.start()
    problems = problems_if_any(text)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(problems) <= 100
    assert all(len(str(problem)) < 400 for problem in problems)
    assert peak < 200 * 2**20


def test_marks_name_lines_and_columns_of_values_and_keys() -> None:
    document = strict_yaml.parse("a: 1\nunits:\n  - id: kda\n    rows: [1, 22]\n", "m.yaml")
    assert document.mark(()) == (1, 1)
    assert document.mark(("a",)) == (1, 4)
    assert document.mark(("a",), key=True) == (1, 1)
    assert document.mark(("units",)) == (3, 3)
    assert document.mark(("units",), key=True) == (2, 1)
    assert document.mark(("units", 0, "rows"), key=True) == (4, 5)
    assert document.mark(("units", 0, "rows", 1)) == (4, 15)
    assert document.mark(("units", 0, "rows", 1), key=True) == (4, 15)
    assert document.mark(("units", 0, "rows", 2)) == (4, 11)
    assert document.mark(("units", 0, "rows", -1)) == (4, 11)
    assert document.mark(("units", "id")) == (3, 3)
    assert document.mark(("none", "a")) == (1, 1)
    assert document.where(("units", 0, "id")) == "m.yaml:3:9"


WORDS, PIECES = (
    st.sampled_from(
        [text for row in yaml.safe_load((CASES / name).read_text("utf-8")) for text in row]
    )
    for name in ("words.yaml", "pieces.yaml")
)
SEEDS = st.sampled_from(
    [
        "a: 1\nb:\n  - x: 2026-11-29\n    z: [1.5, q]\n",
        "k: \"v\"\nl: 'w'\nm: |\n  text\n  more\n",
        "f: >-\n  fold\n   ind\n\n  more\nz: 1\n",
        "- a\n- b: c\n  d: e\n-  - f\n",
        "{a: b, c: [d, {e: f}], \"g\": 'h'}\n",
        "a: b c\n  d e\n\n  f\ng: h\n",
        'a: "x\n  y\n\n  z"\n',
        "a: 'x\n  y''s\n\n  z'\n",
        "a:\n- b\n- c\nd: e # f\n",
    ]
)


@st.composite
def mutated_yaml(draw: st.DrawFn) -> str:
    """A good text with pieces put in, or a soup of pieces."""
    text = draw(st.one_of(SEEDS, st.just("")))
    most = 4 if text else 12
    for piece in draw(st.lists(st.one_of(PIECES, WORDS), min_size=1, max_size=most)):
        at = draw(st.integers(0, len(text)))
        cut = draw(st.sampled_from([0, 0, 1, 2, 5]))
        text = text[:at] + piece + text[at + cut :]
    return text


plain_words = st.one_of(WORDS, st.text("abeEoOxX0123456789_+-.:~ ", min_size=1, max_size=8))
quoted_words = st.text(min_size=0, max_size=8).map(
    lambda text: '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
)
scalars = st.one_of(plain_words, plain_words, quoted_words)
flow = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        st.lists(st.tuples(scalars, inner), max_size=3).map(
            lambda pairs: "{" + ", ".join(f"{key}: {value}" for key, value in pairs) + "}"
        ),
    ),
    max_leaves=6,
)


def indented(block: str) -> str:
    return "".join(f"  {line}\n" for line in block.removesuffix("\n").split("\n"))


block = st.recursive(
    flow.map(lambda text: f"{text}\n"),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(
            lambda items: "".join(f"-\n{indented(item)}" for item in items)
        ),
        st.lists(st.tuples(scalars, inner), min_size=1, max_size=3).map(
            lambda pairs: "".join(f"{key}:\n{indented(value)}" for key, value in pairs)
        ),
        st.tuples(scalars, st.sampled_from(["|", ">", "|-", ">+"]), inner).map(
            lambda parts: f"{parts[0]}: {parts[1]}\n{indented(parts[2])}"
        ),
    ),
    max_leaves=6,
)


def assert_others_agree(text: str) -> None:
    try:
        ours = strict_yaml.parse(text, "m.yaml").data
    except InputError:
        event("refused")
        return
    event("accepted")
    assert exact(yaml.safe_load(text)) == exact(ours)
    assert exact(ruamel.yaml.YAML(typ="safe", pure=True).load(text)) == exact(ours)


thorough = settings(max_examples=800, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@given(mutated_yaml())
@thorough
def test_mutated_text_that_is_accepted_is_read_alike_by_two_others(text: str) -> None:
    assert_others_agree(text)


@given(block)
@thorough
def test_structured_text_that_is_accepted_is_read_alike_by_two_others(text: str) -> None:
    assert_others_agree(text)


@given(st.one_of(WORDS, st.text("0123456789_+-.:eEoOxXbBtTzZ", min_size=1, max_size=12)))
@thorough
def test_plain_scalars_that_are_accepted_are_read_alike_by_two_others(text: str) -> None:
    assert_others_agree(f"- {text}\n")


@given(mutated_yaml())
@thorough
def test_both_parsers_accept_the_same_texts(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        outcomes = []
        for loader in (yaml.CSafeLoader, yaml.SafeLoader):
            patch.setattr(composer, "_Loader", loader)
            try:
                outcomes.append(exact(strict_yaml.parse(text, "m.yaml").data))
            except InputError:
                outcomes.append("refused")
    assert outcomes[0] == outcomes[1]


json_like = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.text(max_size=6))
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.dates(),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3)
        | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(json_like)
@settings(max_examples=500, deadline=None)
def test_what_a_yaml_writer_writes_plainly_comes_back(data: object) -> None:
    text = yaml.safe_dump(data, allow_unicode=True, sort_keys=False, default_style=None)
    try:
        read = strict_yaml.parse(text, "m.yaml").data
    except InputError:
        assume(False)
    assert exact(read) == exact(data)

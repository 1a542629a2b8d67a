# SPDX-License-Identifier: Apache-2.0
"""What a pydantic model has against a document, told at the place of each value."""

from datetime import date
from enum import StrEnum
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, model_validator

from fasttrack import strict_yaml
from fasttrack.errors import InputError


class Tier(StrEnum):
    DECLARED = "declared"
    COMPILED = "compiled"


class Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Range(Record):
    low: int = Field(ge=1)
    high: int

    @model_validator(mode="after")
    def _ordered(self) -> "Range":
        if self.high < self.low:
            raise ValueError("the range is reversed")
        return self


class Cpu(Record):
    kind: Literal["cpu"]
    cores: int


class Gpu(Record):
    kind: Literal["gpu"]
    memory: float


class Manifest(Record):
    name: str = Field(pattern="^[a-z]+$")
    version: str = "1"
    tier: Tier = Tier.DECLARED
    on: bool | None = None
    granted: date | None = None
    rows: tuple[Range, ...] = ()
    by_tier: dict[Tier, int] = {}
    path_class: str = Field(default="a", alias="class")
    hardware: Annotated[Cpu | Gpu, Field(discriminator="kind")] | None = None


def told(text: str) -> list[str]:
    document = strict_yaml.parse(text, "m.yaml")
    with pytest.raises(InputError) as caught:
        strict_yaml.validate(document, Manifest)
    return [str(problem).removeprefix("m.yaml:") for problem in caught.value.problems]


def test_a_good_document_becomes_its_model() -> None:
    text = (
        "name: kda\ntier: compiled\ngranted: 2026-11-29\nrows: [{low: 1, high: 2}]\n"
        "by_tier: {declared: 3}\nclass: b\nhardware: {kind: gpu, memory: 80}\n"
    )
    model = strict_yaml.validate(strict_yaml.parse(text, "m.yaml"), Manifest)
    assert model.tier is Tier.COMPILED
    assert model.granted == date(2026, 11, 29)
    assert model.rows == (Range(low=1, high=2),)
    assert model.by_tier == {Tier.DECLARED: 3}
    assert model.path_class == "b"
    assert model.hardware == Gpu(kind="gpu", memory=80.0)


MESSAGES = [
    ("tier: declared\n", ["1:1: saw no key `name`; want the key `name`"]),
    (
        "name: k\nteir: compiled\n",
        [
            "2:1: saw the unknown key `teir`; want one of `by_tier`, `class`, `granted`, "
            "`hardware`, `name`, `on`, `rows`, `tier`, `version`; fix: write `tier`"
        ],
    ),
    ("name: k\nversion: 1.0\n", ["2:10: saw `1.0` in `version`; want text; fix: quote it"]),
    (
        "name: k\ntier: compile\n",
        ["2:7: saw \"compile\" in `tier`; want 'declared' or 'compiled'; fix: write `compiled`"],
    ),
    ("name: k\ngranted: soon\n", ['2:10: saw "soon" in `granted`; want a date such as 2026-11-29']),
    ("name: k\nrows: 3\n", ["2:7: saw `3` in `rows`; want a list"]),
    ("name: k\nrows: [3]\n", ["2:8: saw `3` in `rows[0]`; want a mapping"]),
    (
        'name: k\nrows:\n  - low: "1"\n    hi: 2\n',
        [
            '3:10: saw "1" in `rows[0].low`; want a whole number',
            "3:5: saw no key `high` in `rows[0]`; want the key `high`",
            "4:5: saw the unknown key `hi` in `rows[0]`; want one of `high`, `low`; "
            "fix: write `high`",
        ],
    ),
    (
        "name: k\nrows:\n  - {low: 0, high: 2}\n",
        ["3:11: saw `0` in `rows[0].low`; want greater than or equal to 1"],
    ),
    (
        "name: k\nrows:\n  - {low: 3, high: 2}\n",
        ["3:5: saw a mapping in `rows[0]`; want the range is reversed"],
    ),
    (
        "name: k\nby_tier: {served: 1}\n",
        ["2:11: saw \"served\" in `by_tier.served`; want 'declared' or 'compiled'"],
    ),
    ("name: k\nclass: null\n", ["2:8: saw `null` in `class`; want text"]),
    (
        "name: k\nhardware: {kind: cpu, cores: true}\n",
        ["2:30: saw `true` in `hardware.cores`; want a whole number"],
    ),
    (
        "name: k\nhardware: {kind: gpu, memory: 1.0, memori: 2}\n",
        [
            "2:36: saw the unknown key `memori` in `hardware`; want one of `cores`, `kind`, "
            "`memory`; fix: write `memory`"
        ],
    ),
    ("- a\n", ["1:1: saw a list of 1; want a mapping"]),
]


@pytest.mark.parametrize(("text", "messages"), MESSAGES)
def test_every_problem_of_a_model_is_told_at_its_place(text: str, messages: list[str]) -> None:
    assert told(text) == messages


def test_problems_of_a_model_are_bounded() -> None:
    text = "name: k\nrows:\n" + "  - 1\n" * 5000
    assert len(told(text)) == 101
    assert "4900 more problems" in told(text)[-1]


class Either(Record):
    level: Tier | Literal["none"]


def test_a_value_of_neither_of_two_kinds_is_told_once() -> None:
    with pytest.raises(InputError) as caught:
        strict_yaml.validate(strict_yaml.parse("level: compile\n", "e.yaml"), Either)
    assert [str(problem) for problem in caught.value.problems] == [
        "e.yaml:1:8: saw \"compile\" in `level`; want 'declared' or 'compiled', or 'none'; "
        "fix: write `compiled`"
    ]

# SPDX-License-Identifier: Apache-2.0
"""The contract lint, over tests/cases/audit/contracts.yaml."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fasttrack.audit.fit import matches
from fasttrack.audit.lint import check_against, load_contract
from fasttrack.audit.program import Instruction, Kernel, Parameter, Toolchain
from fasttrack.audit.read.operands import operand
from fasttrack.errors import InputError

CASES = yaml.safe_load(
    (Path(__file__).parents[1] / "cases" / "audit" / "contracts.yaml").read_text(encoding="utf-8")
)
SOUND: str = CASES["sound"]


def _instruction(at: int, text: str) -> Instruction:
    opcode, *rest = text.split()
    return Instruction(
        address=16 * at, opcode=opcode, modifiers=(), guard=None, text=text,
        operands=tuple(operand(opcode, one, last=False) for one in rest),
    )  # fmt: skip


def _kernel(case: dict[str, Any]) -> Kernel:
    """A kernel that `sound` fits, but for what a case says of it."""
    sizes = case.get("sizes", (8, 8, 8, 4, 16))
    offsets = [sum(sizes[:at]) for at in range(len(sizes))]
    code = ["BAR " + str(one) for one in case.get("barriers", (1,))]
    code += ["PREEXIT"] * case.get("triggers", True)
    return Kernel(
        name=case.get("name", "axpy_bf16"),
        arch="sm_90a",
        instructions=tuple(map(_instruction, range(len(code)), code)),
        parameters=tuple(map(Parameter, range(len(sizes)), offsets, sizes)),
        bank_offset=0x210,
        threads=case.get("threads", 256),
        cubin="0" * 64,
        toolchain=Toolchain("", ""),
        block=tuple(case["block"]) if "block" in case else None,
        cluster=case.get("cluster"),
    )


def _text(case: dict[str, Any]) -> str:
    text = SOUND
    edits = {case["replace"]: case["by"]} if "replace" in case else {}
    for old, new in (edits | case.get("also", {})).items():
        assert text.count(old) == 1, f"{old!r} is not there exactly once"
        text = text.replace(old, new)
    return text


def _problems(error: InputError) -> list[str]:
    return [str(problem).removeprefix("contract.yaml: ") for problem in error.problems]


def test_a_sound_contract_that_fits_its_kernel_passes() -> None:
    check_against(load_contract(SOUND, "contract.yaml"), _kernel({}), "contract.yaml")


@pytest.mark.parametrize("case", CASES["itself"], ids=lambda case: case["says"][:60])
def test_a_contract_that_contradicts_itself_is_told(case: dict[str, Any]) -> None:
    with pytest.raises(InputError) as raised:
        load_contract(_text(case), "contract.yaml")
    if ":" in case["says"]:
        assert case["says"] in _problems(raised.value)
    else:
        assert case["says"] in str(raised.value)


@pytest.mark.parametrize("case", CASES["kernel"], ids=lambda case: case["says"][:60])
def test_a_contract_that_does_not_fit_its_kernel_is_told(case: dict[str, Any]) -> None:
    contract = load_contract(_text(case), "contract.yaml")
    with pytest.raises(InputError) as raised:
        check_against(contract, _kernel(case), "contract.yaml")
    assert case["says"] in _problems(raised.value)


def test_a_barrier_whose_number_is_in_a_register_may_be_any_of_the_contract_s() -> None:
    kernel = _kernel({"barriers": ["R2"]})
    check_against(load_contract(SOUND, "contract.yaml"), kernel, "contract.yaml")


NAMES = st.text("abz_.[?", max_size=6)


@given(st.lists(NAMES, min_size=1, max_size=4), st.lists(NAMES, min_size=3, max_size=3))
def test_a_star_stands_for_any_characters_and_nothing_else_does(
    parts: list[str], between: list[str]
) -> None:
    name = parts[0] + "".join(one + part for one, part in zip(between, parts[1:], strict=False))
    assert matches(name, "*".join(parts))
    assert matches(name, name)
    assert matches(name, "*")
    assert not matches(name + "x", name)


def test_a_flag_may_be_set_and_announce_nothing() -> None:
    text = SOUND.replace("scope: sys", "scope: sys, announces: nothing")
    text = text.replace("writes: [result]\n", "writes: [result, rows, full]\n")
    assert load_contract(text, "contract.yaml").parameters[-1].fields[-1].announces == "nothing"


@pytest.mark.parametrize("name", ["n", "y", "no", "on"])
def test_a_name_that_some_readers_take_for_a_boolean_must_stand_in_quotes(name: str) -> None:
    text = SOUND.replace("name: count", f"name: {name}")
    with pytest.raises(
        InputError, match=rf"saw `{name}` without quotes.*fix: quote it: \"{name}\""
    ):
        load_contract(text, "contract.yaml")
    contract = load_contract(text.replace(f"name: {name},", f'name: "{name}",'), "contract.yaml")
    assert contract.parameters[3].name == name

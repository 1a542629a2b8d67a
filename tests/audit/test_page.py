# SPDX-License-Identifier: Apache-2.0
"""docs/audit.md: its commands run, its contracts are sound, and its tables are complete."""

import re
from pathlib import Path

import pytest
import yaml

from fasttrack.audit.approvals import load_approvals
from fasttrack.audit.contract import Class, Contract, Parameter
from fasttrack.audit.judge import ARCHITECTURES
from fasttrack.audit.lint import load_contract
from fasttrack.audit.read.module import CONTRACTS, TARGETS
from fasttrack.audit.rules import RULES
from tests.test_docs import commands, run

PAGE = "docs/audit.md"
TEXT = (Path(__file__).parents[2] / PAGE).read_text(encoding="utf-8")
NOT_RULES = ("SKELETON",)
"""What the judge finds, and no module of `rules/`."""


def _section(title: str) -> str:
    return TEXT.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def _rows(text: str) -> list[str]:
    return re.findall(r"^\| `?([\w-]+)`?", text, re.MULTILINE)


def _rules() -> set[str]:
    modules = {__import__(check.__module__, fromlist=["RULE"]) for check in RULES}
    return {module.RULE for module in modules} | set(NOT_RULES)


def test_every_command_of_the_page_does_what_the_page_says(tmp_path: Path) -> None:
    shown, printed = set(), ""
    for step in commands(PAGE):
        done = run(step.text, tmp_path)
        said = f"$ {step.text}\n{done.stdout}{done.stderr}"
        assert done.returncode == step.code, said
        audited = re.match(r"fasttrack audit (\S+)\.ptx", step.text)
        if step.verdict:
            assert re.search(rf"^{step.verdict}  ", done.stdout, re.MULTILINE), said
        if audited and (rule := audited[1].upper()) in _rules():
            shown.add(rule)
            assert re.search(rf"^  {rule} (violated|unproven)", done.stdout, re.MULTILINE), said
        printed += done.stdout
    assert shown == _rules()
    quoted = re.findall(r"^```text\n((?:  |RAW).*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    assert len(quoted) == 2
    assert [text for text in quoted if text not in printed] == []


def test_the_contracts_and_approvals_of_the_page_are_sound() -> None:
    blocks = re.findall(r"^```yaml\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    kinds = {"contract": load_contract, "approvals": load_approvals}
    for block in blocks:
        kinds[next(iter(yaml.safe_load(block)))](block, PAGE)
    assert len(blocks) == len(kinds)


def test_the_tables_name_every_class_rule_and_architecture() -> None:
    assert set(_rows(_section("Rules"))) - {"rule"} == _rules()
    named = set(_rows(_section("Contracts")))
    assert set(Class) <= named
    assert all(f"`{one}`" in TEXT for one in ARCHITECTURES)


@pytest.mark.parametrize("model", [Contract, Parameter])
def test_every_key_of_a_contract_is_on_the_page(model: type[Contract] | type[Parameter]) -> None:
    said = _section("Contracts") + _section("A first kernel")
    assert [key for key in model.model_fields if not re.search(rf"\b{key}\b", said)] == []


def test_what_a_module_must_define_is_on_the_page() -> None:
    section = _section("A module of the CuTe DSL")
    assert f"def {TARGETS}():" in section
    assert f"{CONTRACTS} = [" in section

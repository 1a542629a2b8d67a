# SPDX-License-Identifier: Apache-2.0
"""What a waiting kernel computes is what the mailboxes of the decode path are made for."""

import re

from hypothesis import given
from hypothesis import strategies as st

from kimi_k3.decode.comm.health import Health
from kimi_k3.decode.comm.interface import Site
from kimi_k3.decode.comm.mailbox import COUNTER_WRAP, Mailbox, MailboxSpec, Rearm
from kimi_k3.decode.comm.words import Sentinel, words_for
from kimi_k3.decode.kernels.attn_res.table import FORMS
from kimi_k3.decode.kernels.build import HERE, SHARED_SOURCES
from kimi_k3.decode.kernels.layout import DTYPES
from kimi_k3.decode.kernels.wait import (
    EXCHANGE,
    HEALTH_WORDS,
    PARITIES,
    SENTINEL,
    WORD_BYTES,
    wait_operands,
)


@given(st.integers(0, COUNTER_WRAP - 1), st.integers(1, 200), st.data())
def test_the_parity_is_that_of_the_mailbox(step: int, per_step: int, data: st.DataObject) -> None:
    ordinal = data.draw(st.integers(0, per_step - 1))
    mailbox = Mailbox(MailboxSpec(Site.O_PROJ, 4, per_step), 1, 1)
    (formula,) = re.findall(
        r"self\.parity = Int32\((.*)\)$", (HERE / "sync.py").read_text(encoding="utf-8"), re.M
    )
    names = {"step": step, "exchange": [per_step], "ordinal": ordinal}
    ours = eval(formula.replace("self.", ""), {"PARITIES": PARITIES}, names)
    assert ours == mailbox.parity(step, ordinal)


def test_words_and_records_are_those_of_the_exchanges() -> None:
    assert (Sentinel.ALL_ONES.value, Rearm.AT_ONCE.value) == (SENTINEL, PARITIES)
    assert WORD_BYTES == 4
    assert len(Health().words) == HEALTH_WORDS
    assert EXCHANGE == ("per_step", "rank", "site", "limit_ns")
    by_name = {one.name: one for one in wait_operands(64, 7168)}
    rows = by_name["mailbox"].shape
    assert rows == (PARITIES, 64, words_for(7168, DTYPES["bf16"]))
    assert by_name["health"].shape == (HEALTH_WORDS,)


def test_only_one_file_holds_ptx_for_memory_order() -> None:
    ordered = re.compile(r"inline_ptx|sem=|scope=")
    holding = {path.name for path in HERE.rglob("*.py") if ordered.search(path.read_text("utf-8"))}
    assert holding == {"sync.py"}
    assert "sync.py" in SHARED_SOURCES


def test_two_forms_are_fed_by_a_mailbox() -> None:
    fed = {name: form["arrives"] for name, form in FORMS.items() if form["arrives"]}
    assert fed == {"add-mailbox": "delta", "plain-mailbox": "prefix"}

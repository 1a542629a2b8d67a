# SPDX-License-Identifier: Apache-2.0
"""What `cuobjdump -elf` says, in the tool's words."""

from hypothesis import given
from hypothesis import strategies as st

from fasttrack.audit.program import Parameter
from fasttrack.audit.read.facts import Facts, facts_of

SAID = """
.section .symtab
   Num            Value             Size  Type          Bind    Vis        Other       Ndx  Name
   0x7                0            0x500  FUNC          GLOBAL  DEFAULT    ENTRY      0x10  scale
   0x8             0x60             0xa0  FUNC          LOCAL   DEFAULT    -       0x10  $scale$wait
   0x9                0            0x180  FUNC          GLOBAL  DEFAULT    ENTRY      0x11  other
   0xa             0x90             0xa0  FUNC          LOCAL   DEFAULT    -          0x12  lost
   0xb                0            0x180  FUNC          GLOBAL  DEFAULT    ENTRY      0x13  bare

.nv.info
\t<0x1>
\tAttribute:\tEIATTR_MAX_THREADS
\tFormat:\tEIFMT_SVAL
\tValue:\t0x9 0x9 0x9
.nv.info.scale
\t<0x1>
\tAttribute:\tEIATTR_KPARAM_INFO
\tFormat:\tEIFMT_SVAL
\tValue:\tIndex : 0x0\tOrdinal : 0x1\tOffset  : 0x8\tSize    : 0x80
\t<0x2>
\tAttribute:\tEIATTR_KPARAM_INFO
\tFormat:\tEIFMT_SVAL
\tValue:\tIndex : 0x0\tOrdinal : 0x0\tOffset  : 0x0\tSize    : 0x8
\t<0x3>
\tAttribute:\tEIATTR_PARAM_CBANK
\tFormat:\tEIFMT_SVAL
\tValue:\t0x2 0x880380
\t<0x4>
\tAttribute:\tEIATTR_REQNTID
\tFormat:\tEIFMT_SVAL
\tValue:\t0x40 0x2 0x1
\t<0x5>
\tAttribute:\tEIATTR_CTA_PER_CLUSTER
\tFormat:\tEIFMT_SVAL
\tValue:\t0x2 0x1 0x1
.nv.info.called
.nv.info.other
\t<0x1>
\tAttribute:\tEIATTR_MAX_THREADS
\tFormat:\tEIFMT_SVAL
\tValue:\t0x80 0x1 0x1
\t<0x2>
\tAttribute:\tEIATTR_CTA_PER_CLUSTER
\tFormat:\tEIFMT_SVAL
\tValue:\t0x0 0x0 0x0
"""


def test_parameters_the_bank_and_the_launch_are_each_kernel_s_own() -> None:
    found = facts_of(SAID)
    assert found["scale"] == Facts(
        parameters=[Parameter(1, 8, 128), Parameter(0, 0, 8)],
        bank_offset=0x380,
        threads=128,
        block=(64, 2, 1),
        cluster=2,
        functions={"scale": 0, "$scale$wait": 0x60},
        is_kernel=True,
    )


def test_a_most_of_threads_is_no_exact_block_and_zeros_are_no_cluster() -> None:
    assert facts_of(SAID)["other"] == Facts(threads=128, functions={"other": 0}, is_kernel=True)


def test_what_is_in_no_kernel_s_section_belongs_to_none() -> None:
    assert set(facts_of(SAID)) == {"scale", "other", "bare", "called"}


def test_a_kernel_of_which_nothing_else_is_said_is_one_all_the_same() -> None:
    assert facts_of(SAID)["bare"] == Facts(functions={"bare": 0}, is_kernel=True)
    assert not facts_of(SAID)["called"].is_kernel


@given(st.text(alphabet="\t\n .:0xabcEIATRNV_nvifo", max_size=200))
def test_any_text_gives_some_facts(text: str) -> None:
    assert isinstance(facts_of(SAID + text), dict)


@given(st.integers(0, len(SAID)), st.integers(0, 20))
def test_a_hole_anywhere_gives_some_facts(at: int, size: int) -> None:
    assert isinstance(facts_of(SAID[:at] + SAID[at + size :]), dict)

# SPDX-License-Identifier: Apache-2.0
"""STORE: memory is written while the kernels before this one may still read or write it."""

from collections.abc import Iterator

from fasttrack.audit.finding import Finding
from fasttrack.audit.flow.events import Does
from fasttrack.audit.flow.facts import Facts
from fasttrack.audit.flow.state import PDL

RULE = "STORE"
_GENERIC = ("ST", "ATOM", "RED")
"""Opcodes that write shared memory, too: what they write is known by the address alone."""


def check(facts: Facts) -> Iterator[Finding]:
    """Each write that some thread may do before it has waited."""
    if not facts.contract.pdl:
        return
    for key, event in facts.those(Does.WRITE):
        if PDL not in event.tokens:
            places = facts.places(event)
            known = any(one.holds is not None for one in places)
            name = places[0].name if places else ""
            sure = known or event.instruction.opcode not in _GENERIC
            yield facts.finding(RULE, (key, event), _words(name), name, sure)


def _words(name: str) -> tuple[str, str, str]:
    return (
        f"{name or 'memory'} is written before ACQBULK, the wait for the kernels before",
        "writes after the wait",
        "wait before the first store",
    )

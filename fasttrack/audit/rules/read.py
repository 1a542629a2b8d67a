# SPDX-License-Identifier: Apache-2.0
"""READ: a part of the kernel could not be followed, so nothing is proved."""

from collections.abc import Iterator

from fasttrack.audit.finding import Finding, Verdict
from fasttrack.audit.flow.blocks import BYTES
from fasttrack.audit.flow.facts import Facts

RULE = "READ"


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for each instruction that could not be followed."""
    for address, why in sorted(facts.graph.problems.items()):
        instruction = facts.kernel.instructions[address // BYTES]
        yield Finding(
            RULE, Verdict.UNPROVEN, f"{instruction.text}: {why}",
            "instructions whose effect is known",
            "have a person read the machine code from there on",
            address, instruction.text, instruction.source,
        )  # fmt: skip

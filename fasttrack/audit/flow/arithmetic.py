# SPDX-License-Identifier: Apache-2.0
"""Which function works out an arithmetic instruction."""

from collections.abc import Mapping

from fasttrack.audit.flow.choices import half_constant, permute, select, shift, smaller
from fasttrack.audit.flow.conditions import compare, logic, predicate_logic
from fasttrack.audit.flow.indices import elect, shuffle, special, vote
from fasttrack.audit.flow.integer import add, move, multiply, scaled_add
from fasttrack.audit.flow.terms import Handler, plain

HANDLERS: Mapping[str, Handler] = {
    "MOV": move, "R2UR": move, "MOV32I": move,
    "IADD3": add, "IADD": add, "VIADD": add,
    "IMAD": multiply,
    "LEA": scaled_add,
    "LOP3": logic,
    "PLOP3": predicate_logic,
    "ISETP": compare,
    "SEL": select,
    "SHF": shift,
    "PRMT": permute,
    "VIMNMX": smaller, "VIADDMNMX": smaller, "IMNMX": smaller,
    "S2R": special, "S2UR": special, "CS2R": special,
    "HFMA2": half_constant,
    "SHFL": shuffle,
    "VOTE": vote, "VOTEU": vote,
    "ELECT": elect,
}  # fmt: skip


def handler(opcode: str) -> Handler:
    """What to do with an arithmetic instruction; those of the uniform registers do the same."""
    return HANDLERS.get(opcode) or HANDLERS.get(opcode.removeprefix("U"), plain)

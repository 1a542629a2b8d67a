# SPDX-License-Identifier: Apache-2.0
"""Reads a cubin: instructions from `nvdisasm`, parameters from `cuobjdump`."""

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from fasttrack.audit.program import Instruction, Kernel, Parameter, SourceLine, Target, Toolchain
from fasttrack.audit.read.facts import Facts, facts_of
from fasttrack.audit.read.notes import Notes, notes_of
from fasttrack.audit.read.operands import operand, register, split
from fasttrack.audit.read.tools import ask
from fasttrack.errors import FactUnavailable

BYTES = 16
"""Size of an instruction on every architecture since sm_70."""
INDIRECT = frozenset({"BRX", "BRXU", "JMX", "JMXU"})
"""Branches to an address in a register."""
_CODE, _WORDS = "sass-instructions", ("predicate", "opcode", "operands")
_ARCH = re.compile(r"\bsm=(?P<arch>\d+[af]?)")


ELF = b"\x7fELF"
_MACHINE = (190).to_bytes(2, "little")
"""What the header of an ELF file says that was made for a GPU of NVIDIA's."""


def is_cubin(data: bytes) -> bool:
    """Whether bytes begin as a cubin does, as far as they go."""
    return data.startswith(ELF) and (data[18:20] == _MACHINE or len(data) < 20)


def read_cubin(data: bytes) -> tuple[Kernel, ...]:
    """The kernels of a cubin, in the order of their names.

    Raises:
        InputError: the tools are not installed.
        FactUnavailable: it is no cubin, or holds something that can not be read.
    """
    if not data.startswith(ELF):
        raise FactUnavailable("it is no cubin: it does not begin as an ELF file does")
    elf = ask("cuobjdump", ("-elf",), data)
    arch = _ARCH.search(elf)
    if arch is None:
        raise FactUnavailable("it does not say for which architecture it was made")
    head, functions = _listing(ask("nvdisasm", ("-json",), data))
    lines = ".debug_line" in elf
    indirect = any(_jumps(entry) for code in functions.values() for entry in code)
    notes = notes_of(data, lines=lines) if lines or indirect else defaultdict(Notes)
    made = _toolchain(head)
    facts = {name: one for name, one in facts_of(elf).items() if one.is_kernel}
    for name in sorted(facts.keys() - functions.keys()):
        raise FactUnavailable(f"nvdisasm lists no instructions of {name}")
    digest = hashlib.sha256(data).hexdigest()
    return tuple(
        Kernel(
            name=name,
            arch=f"sm_{arch['arch']}",
            instructions=_instructions(functions[name], notes[name].lines, one.functions),
            parameters=_parameters(name, one),
            bank_offset=_bank(name, one),
            threads=one.threads,
            cubin=digest,
            toolchain=made,
            jumps=tuple(notes[name].jumps.items()),
            block=one.block,
            cluster=one.cluster,
        )
        for name, one in sorted(facts.items())
    )


def _listing(text: str) -> tuple[Mapping[str, Any], dict[str, list[Mapping[str, str]]]]:
    """What the listing says of the file, and the instructions of each function."""
    try:
        head, functions = json.loads(text)
        listed: dict[str, list[Mapping[str, str]]] = {
            str(one["function-name"]): [
                {key: str(entry.get(key, "")) for key in _WORDS} for entry in one[_CODE]
            ]
            for one in functions
            if "function-name" in one
        }
        return dict(head), listed
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise FactUnavailable("nvdisasm wrote no JSON of the form that is known here") from error


def _jumps(entry: Mapping[str, str]) -> bool:
    """Whether only the text of the tool says where an instruction goes."""
    return entry["opcode"].partition(".")[0] in INDIRECT


def _toolchain(head: Mapping[str, Any]) -> Toolchain:
    note = head.get(".note.nv.tkinfo")
    made = note if isinstance(note, dict) else {}
    assembler = " ".join(str(made.get(key, "")) for key in ("tki_toolName", "tki_toolVersion"))
    return Toolchain(assembler.strip(), str(head.get("Producer", "")))


def _parameters(name: str, facts: Facts) -> tuple[Parameter, ...]:
    found = sorted(facts.parameters, key=lambda one: one.ordinal)
    in_order = [one.ordinal for one in found] == list(range(len(found)))
    apart = all(one.offset + one.size <= other.offset for one, other in pairwise(found))
    if not in_order or not apart:
        raise FactUnavailable(f"the parameters of {name} do not fit together")
    return tuple(found)


def _bank(name: str, facts: Facts) -> int:
    if facts.bank_offset is not None:
        return facts.bank_offset
    if facts.parameters:
        raise FactUnavailable(f"it does not say where the parameters of {name} lie")
    return 0


def _instructions(
    entries: Sequence[Mapping[str, str]],
    lines: Mapping[int, SourceLine],
    functions: Mapping[str, int],
) -> tuple[Instruction, ...]:
    return tuple(
        _instruction(at * BYTES, entry, lines.get(at * BYTES), functions)
        for at, entry in enumerate(entries)
    )


def _instruction(
    address: int,
    entry: Mapping[str, str],
    source: SourceLine | None,
    functions: Mapping[str, int],
) -> Instruction:
    opcode, *modifiers = entry["opcode"].split(".")
    parts = split(entry["operands"])
    guard = entry["predicate"]
    words = " ".join(word for word in (guard, entry["opcode"], ", ".join(parts)) if word)
    return Instruction(
        address=address,
        opcode=opcode,
        modifiers=tuple(modifiers),
        operands=tuple(
            Target(functions[part])
            if opcode == "CALL" and part in functions
            else operand(opcode, part, at == len(parts) - 1)
            for at, part in enumerate(parts)
        ),
        guard=register(guard.removeprefix("@")) if guard else None,
        text=words,
        source=source,
    )

# SPDX-License-Identifier: Apache-2.0
"""What `cuobjdump -elf` tells of the kernels of a cubin: parameters, and limits of the launch."""

import re
from dataclasses import dataclass, field
from math import prod

from fasttrack.audit.program import Parameter

_SECTION = re.compile(r"^\.nv\.info\.(?P<kernel>\S+)$")
_FUNCTION = re.compile(
    r"\s*0x[0-9a-f]+\s+(?P<at>0(?:x[0-9a-f]+)?)\s+\S+\s+FUNC\s+\w+\s+\w+\s+(?P<entry>ENTRY|-)"
    r"\s+(?P<section>0x[0-9a-f]+)\s+(?P<name>\S+)$"
)
_PARAMETER = re.compile(
    r"Ordinal\s*:\s*(0x[0-9a-f]+)\s+Offset\s*:\s*(0x[0-9a-f]+)\s+Size\s*:\s*(0x[0-9a-f]+)"
)
_PLACE = re.compile(r"0x[0-9a-f]+\s+(?P<at>0x[0-9a-f]+)")
"""Which symbol, and in 16 bits each how large the parameters are and where they begin."""


@dataclass
class Facts:
    """Facts of one kernel, as far as the cubin holds them.

    Attributes:
        parameters: found so far, in any order.
        bank_offset: where parameters begin in constant bank 0; None where it is not said.
        threads: most threads of a block, or None.
        block: threads that a block must have, or None.
        cluster: blocks that a cluster must have, or None.
        functions: functions that lie in the kernel's own section, by name: where they begin.
        is_kernel: whether it is one, and no function that kernels call.
    """

    parameters: list[Parameter] = field(default_factory=list)
    bank_offset: int | None = None
    threads: int | None = None
    block: tuple[int, int, int] | None = None
    cluster: int | None = None
    functions: dict[str, int] = field(default_factory=dict)
    is_kernel: bool = False


def facts_of(text: str) -> dict[str, Facts]:
    """Facts of each function by its name.

    Args:
        text: what `cuobjdump -elf` prints.
    """
    found: dict[str, Facts] = {}
    facts: Facts | None = None
    attribute = ""
    lines = text.splitlines()
    for line in lines:
        if line.startswith("."):
            match = _SECTION.match(line)
            facts = found.setdefault(match["kernel"], Facts()) if match else None
        elif facts is not None and "Attribute:" in line:
            attribute = line.split(":", 1)[1].strip()
        elif facts is not None and "Value:" in line:
            _note(facts, attribute, line.split(":", 1)[1].strip())
    symbols = [match for match in map(_FUNCTION.match, lines) if match]
    sections = {one["section"]: one["name"] for one in symbols if one["entry"] == "ENTRY"}
    for one in symbols:
        if (kernel := sections.get(one["section"])) is not None:
            found.setdefault(kernel, Facts()).functions[one["name"]] = int(one["at"], 16)
            found[kernel].is_kernel = True
    return found


def _note(facts: Facts, attribute: str, value: str) -> None:
    if attribute.startswith("EIATTR_KPARAM_INFO"):
        match = _PARAMETER.search(value)
        if match is not None:
            facts.parameters.append(Parameter(*(int(part, 16) for part in match.groups())))
    elif attribute == "EIATTR_PARAM_CBANK":
        place = _PLACE.fullmatch(value)
        if place is not None:
            facts.bank_offset = int(place["at"], 16) & 0xFFFF
    elif attribute in ("EIATTR_REQNTID", "EIATTR_MAX_THREADS", "EIATTR_CTA_PER_CLUSTER"):
        sizes = [int(word, 16) for word in re.findall(r"0x[0-9a-f]+", value)[:3]]
        if len(sizes) == 3 and all(sizes):
            _size(facts, attribute, (sizes[0], sizes[1], sizes[2]))


def _size(facts: Facts, attribute: str, sizes: tuple[int, int, int]) -> None:
    if attribute == "EIATTR_CTA_PER_CLUSTER":
        facts.cluster = prod(sizes)
        return
    facts.threads = prod(sizes)
    if attribute == "EIATTR_REQNTID":
        facts.block = sizes

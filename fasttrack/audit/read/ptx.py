# SPDX-License-Identifier: Apache-2.0
"""Reads PTX: assembles it, because its order is not the order of the machine code.

What is audited then is what this machine's `ptxas` makes of it. Another version may order loads
otherwise; audit the cubin that is loaded.
"""

import re
from pathlib import Path

from fasttrack.audit.read.tools import assemble
from fasttrack.errors import FactUnavailable

_TARGET = re.compile(rb"^\s*\.target\s+(sm_\d+[af]?)", re.MULTILINE)
_ENTRY = re.compile(rb"^\s*(?:\.visible\s+|\.weak\s+)?\.entry\s", re.MULTILINE)
_COMMENT = re.compile(rb"//[^\n]*|/\*.*?\*/", re.DOTALL)
_LOCATED = re.compile(rb"^\s*\.loc\s", re.MULTILINE)
_INSTRUCTION = re.compile(rb"\s*(?:@!?%?\w+\s+)?[a-z]\w*[.\s;][^:]*")
_FILE_NAME = re.compile(r"[\w.+-]+")


def looks_like_ptx(data: bytes) -> bool:
    """Whether bytes are PTX, by its first directives."""
    return b"\0" not in data[:4096] and _TARGET.search(data) is not None


def cubin_of(data: bytes, name: str) -> bytes:
    """The cubin that `ptxas` makes for the architecture which the text names.

    Args:
        data: the text.
        name: path of its file, which is where findings are if it does not name other sources.

    Raises:
        InputError: `ptxas` is not installed.
        FactUnavailable: it holds no kernel, or `ptxas` refuses it.
    """
    target = _TARGET.search(data)
    if target is None or _ENTRY.search(data) is None:
        raise FactUnavailable("it holds no kernel: PTX with `.target` and an `.entry` is wanted")
    arch = target[1].decode()
    if not _LOCATED.search(data):
        try:
            return assemble(with_lines(data, name), arch)
        except FactUnavailable:  # of the text as it is, or it is refused for its own faults
            pass
    return assemble(data, arch)


def with_lines(data: bytes, name: str) -> bytes:
    """PTX in which each instruction that begins a line says that it does."""
    own = Path(name).name
    file = own if _FILE_NAME.fullmatch(own) else "kernel.ptx"
    plain = _COMMENT.sub(lambda found: b"\n" * found[0].count(b"\n"), data)
    rows, depth, last = [], 0, b""
    for number, row in enumerate(plain.split(b"\n"), 1):
        begins = depth > 0 and last in b";{}:" and _INSTRUCTION.fullmatch(row) is not None
        rows.append((b".loc 1 %d 0\n" % number if begins else b"") + row)
        depth += row.count(b"{") - row.count(b"}")
        last = row.rstrip()[-1:] or last
    return b"\n".join(rows) + f'\n.file 1 "{file}"\n'.encode()

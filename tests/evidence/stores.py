# SPDX-License-Identifier: Apache-2.0
"""Stores for tests: envelopes of a few cells, and files that hold them under any name."""

import hashlib
from pathlib import Path

from fasttrack.evidence.dsse import sign
from fasttrack.evidence.store import Contents
from fasttrack.evidence.store_files import PLAIN_SUFFIX, SUFFIX
from fasttrack.vocabulary import Kind
from tests.engine import POLICY, files
from tests.evidence.keys import DAY, key, signer
from tests.evidence.strategies import good

AS_OF = f"--as-of={DAY}"


SAME_RUN = "2" * 32


def line(
    number: int = 1,
    key_id: str = "lab",
    kind: Kind = Kind.KERNEL_TEST,
    run: str = SAME_RUN,
) -> bytes:
    """An envelope of a cell of its own."""
    return sign(good(kind, run=run, values={"unit": "kda", "rows": number}), signer(key_id))


LINES = [line(number) for number in range(1, 6)]
CONTENT = b"".join(one + b"\n" for one in LINES)


def named(content: bytes) -> str:
    """The name of a file by its bytes, compressed or plain."""
    packed = content.startswith(b"\x1f\x8b")
    return hashlib.sha256(content).hexdigest() + (SUFFIX if packed else PLAIN_SUFFIX)


def put(folder: Path, content: bytes, name: str | None = None) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / (name or named(content))
    path.write_bytes(content)
    return path


def rows(contents: Contents) -> list[object]:
    return [one.statement.cell.values["rows"] for one in contents.statements]


TRUST_LINES = """
trust:
  keys:
    - id: lab
      public: "{public}"
      roles: [runner]
      kinds: [kernel-test, refusal]
      pool: lab
      hardware: [h200, cpu]
      valid_from: 2026-01-01
      valid_until: 2026-12-31
"""


def policy() -> str:
    return files()[POLICY] + TRUST_LINES.format(public=key("lab").public)

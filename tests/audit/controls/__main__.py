# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.audit.controls build`: makes the stored cubins again; needs nvcc."""

import sys

import yaml

from .build import COMPILER, DIGESTS, cubins, digests, pack, sources
from .table import ARCHIVE


def main() -> None:
    """Compiles, packs, and records of which sources."""
    if sys.argv[1:] != ["build"]:
        sys.exit(__doc__)
    ARCHIVE.write_bytes(pack(cubins()))
    record = {"compiler": COMPILER, "sources": digests(sources()), **digests((ARCHIVE,))}
    DIGESTS.write_text(yaml.safe_dump(record, sort_keys=False), encoding="utf-8")


main()

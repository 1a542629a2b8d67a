# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.audit.generator build`: makes the stored sample again; needs nvcc."""

import sys

from tests.audit.controls.build import pack
from tests.audit.controls.table import ARCHES
from tests.audit.generated import compiled

from .sample import ARCHIVE, COUNT, DIGEST, SEED, digest


def main() -> None:
    """Compiles, packs, and records of which text."""
    if sys.argv[1:] != ["build"]:
        sys.exit(__doc__)
    ARCHIVE.write_bytes(pack({arch: compiled(SEED, COUNT, arch)[0] for arch in ARCHES}))
    DIGEST.write_text(f"{digest()}\n", encoding="utf-8")


main()

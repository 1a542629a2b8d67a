# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.audit.controls.dsl build`: makes the stored cubins again; needs the CuTe DSL."""

import json
import sys

import yaml

from fasttrack.audit.read.module import cubins_of, load_module
from tests.audit.controls.build import digests, pack
from tests.audit.controls.table import ARCHES

from .table import ARCHIVE, COMPILER, CONTRACTS, DIGESTS, SOURCE


def main() -> None:
    """Compiles, packs, and records of which source."""
    if sys.argv[1:] != ["build"]:
        sys.exit(__doc__)
    module = load_module(SOURCE)
    files = {CONTRACTS: json.dumps(module.CONTRACTS).encode()}
    for arch in ARCHES:
        made = enumerate(cubins_of(module, arch))
        files |= {f"{at}.{arch}.cubin": data for at, data in made}
    ARCHIVE.write_bytes(pack(files))
    record = {"compiler": COMPILER, "sources": digests((SOURCE,)), **digests((ARCHIVE,))}
    DIGESTS.write_text(yaml.safe_dump(record, sort_keys=False), encoding="utf-8")


main()

# SPDX-License-Identifier: Apache-2.0
"""In a child: the machine code of one variant, as the unit's own module makes it.

The module defines `cubin_of(variant) -> bytes`, which gets the row of the variant table; or, for
the CuTe DSL, `audit_targets()` with a single target, see `fasttrack.audit.read.module`. `CONTRACTS`
may hold contracts. What comes out is bytes: nobody here judges them.
"""

import base64
import importlib
import json
import sys
from pathlib import Path
from typing import Any

from fasttrack.errors import InputError
from fasttrack.evidence.child_report import Build

MAKES = "cubin_of"


def built(root: Path, build: Build) -> dict[str, Any]:
    """Machine code and contracts of a variant, as a report tells them.

    Raises:
        InputError: the module is on no search path, or makes no machine code.
    """
    module = _imported(root.resolve(), build.module)
    code = _code(module, build)
    return {
        "code": base64.b64encode(code).decode("ascii"),
        "contracts": [json.dumps(one) for one in getattr(module, "CONTRACTS", ())],
    }


def _imported(root: Path, path: str) -> Any:
    """The module of a file, by the name that the path's own code imports it by."""
    file = root / path
    for place in map(Path, sys.path):
        if place.is_relative_to(root) and file.is_relative_to(place):
            name = ".".join(file.relative_to(place).with_suffix("").parts)
            module = importlib.import_module(name)
            if Path(module.__file__ or "").resolve() == file:
                return module
    raise InputError.one(path, "a module on no search path", "one that tests can import")


def _code(module: Any, build: Build) -> bytes:
    make = getattr(module, MAKES, None)
    if callable(make):
        code = make(dict(build.variant))
        if not isinstance(code, bytes):
            want = "the bytes of a cubin"
            raise InputError.one(f"{build.module}: {MAKES}", type(code).__name__, want)
        return code
    from fasttrack.audit.read.module import TARGETS, cubins_of  # noqa: PLC0415

    if not callable(getattr(module, TARGETS, None)):
        want = f"`{MAKES}`, which makes the machine code of a variant"
        raise InputError.one(build.module, "no such function", want)
    found = [*cubins_of(module, str(build.variant["arch"]))]
    if len(found) != 1:
        saw, fix = f"{len(found)} targets", f"define `{MAKES}` for several"
        raise InputError.one(f"{build.module}: {TARGETS}", saw, "one for each variant", fix)
    return found[0]

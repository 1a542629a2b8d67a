# SPDX-License-Identifier: Apache-2.0
"""Reads a CuTe DSL module: imports it, and compiles its kernels with fake tensors. It needs no GPU.

The module says what to compile, and is run by that:

    def audit_targets():
        yield scale, (weights, rows, result, stream)   # a function with `@cute.jit`, its arguments

    CONTRACTS = [{"contract": 1, "kernel": "*scale*", ...}]    # as in a contract's YAML
"""

import importlib.util
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fasttrack.audit.contract import Contract
from fasttrack.audit.lint import load_contract
from fasttrack.errors import FactUnavailable, InputError

ARCHITECTURES = ("sm_90a", "sm_100a", "sm_103a")
"""What is compiled when nothing else is asked for."""
TARGETS, CONTRACTS = "audit_targets", "CONTRACTS"


def load_module(path: Path) -> Any:
    """Runs a module's file.

    Raises:
        InputError: it can not be imported, or does not say what to compile.
    """
    name = f"fasttrack_audited_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InputError.one(str(path), "no Python file", "a module that ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise InputError.one(
            str(path), f"{type(error).__name__}: {error}", "a module that can be imported"
        ) from error
    if not callable(getattr(module, TARGETS, None)):
        raise InputError.one(
            str(path), f"no function `{TARGETS}`", "it, to say what to compile",
            "see docs/audit.md, 'A module of the CuTe DSL'",
        )  # fmt: skip
    return module


def contracts_of(module: Any, path: Path) -> list[Contract]:
    """The contracts that a module holds.

    Raises:
        InputError: one of them is wrong.
    """
    entries = getattr(module, CONTRACTS, [])
    return [
        load_contract(json.dumps(entry), f"{path}: {CONTRACTS}[{at}]")
        for at, entry in enumerate(entries)
    ]


def cubins_of(module: Any, arch: str) -> Iterator[bytes]:
    """The cubin of each target of a module for one architecture.

    Raises:
        InputError: the DSL is not installed.
        FactUnavailable: a target does not compile for the architecture.
    """
    try:
        from cutlass import cute  # noqa: PLC0415  (a large package, wanted for modules alone)
    except ImportError as error:
        raise InputError.one(
            "cutlass", "not installed", "the CuTe DSL", "pip install 'nvidia-cutlass-dsl[cu13]'"
        ) from error
    for function, arguments in getattr(module, TARGETS)():
        # A cubin is kept as a file, too; where, the DSL fixed when it was imported, if not said.
        with tempfile.TemporaryDirectory(prefix="fasttrack-audit-") as folder:
            options = f"--keep-cubin --dump-dir {folder} --gpu-arch {arch}"
            try:
                compiled = cute.compile(function, *arguments, options=options)
            except Exception as error:
                what = f"{type(error).__name__}: {error}".split("\n")[0]
                raise FactUnavailable(f"it does not compile for {arch}: {what}") from error
            yield compiled.artifacts.CUBIN

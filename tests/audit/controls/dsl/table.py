# SPDX-License-Identifier: Apache-2.0
"""The controls in the CuTe DSL as data: cubins and contracts as stored, and what is expected."""

import io
import json
import tarfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from fasttrack.audit.contract import Contract
from fasttrack.audit.finding import Verdict
from fasttrack.audit.lint import load_contract
from fasttrack.audit.program import Kernel
from fasttrack.audit.read.cubin import read_cubin
from tests.audit.controls.table import ARCHES

HERE = Path(__file__).parent
ARCHIVE = HERE / "cubins.tar.xz"
DIGESTS = HERE / "digests.yaml"
SOURCE = HERE / "kernels.py"
CONTRACTS = "contracts.json"
COMPILER = "nvidia-cutlass-dsl[cu13] 4.8.1"


@dataclass(frozen=True)
class Control:
    """A kernel of `kernels.py`, and what it must be judged as.

    Attributes:
        name: of its function.
        contract: what holds for it.
        verdict: what its machine code deserves.
        rules: of each architecture, the rules that must be broken.
    """

    name: str
    contract: Contract
    verdict: Verdict
    rules: dict[str, frozenset[str]]


@cache
def stored() -> dict[str, bytes]:
    """The members of the archive by name."""
    with tarfile.open(fileobj=io.BytesIO(ARCHIVE.read_bytes()), mode="r:xz") as archive:
        files = ((one.name, archive.extractfile(one)) for one in archive.getmembers())
        return {name: file.read() for name, file in files if file is not None}


@cache
def controls() -> tuple[Control, ...]:
    """Every control, in the order of the file."""
    contracts = {
        one["kernel"].removeprefix("kernel_cutlass_").removesuffix("_*"): one
        for one in json.loads(stored()[CONTRACTS])
    }
    found = []
    for name, entry in yaml.safe_load((HERE / "kernels.yaml").read_text()).items():
        but = entry.get("but", {})
        rules = {arch: frozenset(but.get(arch, entry.get("rules", ()))) for arch in ARCHES}
        contract = load_contract(json.dumps(contracts[name]), name)
        found.append(Control(name, contract, Verdict(entry["is"]), rules))
    return tuple(found)


@cache
def _kernels(arch: str) -> tuple[Kernel, ...]:
    cubins = [data for name, data in stored().items() if name.endswith(f".{arch}.cubin")]
    return tuple(one for data in cubins for one in read_cubin(data))


def kernel(name: str, arch: str) -> Kernel:
    """One kernel on an architecture."""
    (found,) = (one for one in _kernels(arch) if one.name.startswith(f"kernel_cutlass_{name}_"))
    return found

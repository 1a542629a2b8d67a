# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's disassembler tools: where they are, and what they say of a file.

They come with the extra `audit`, so that every machine reads a cubin with the same version. What
they are given may come from anybody; each run is bounded in time, memory and output.
"""

import importlib.util
import resource
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from fasttrack.errors import FactUnavailable, InputError

SECONDS = 60
MEMORY = 4 << 30
OUTPUT = 512 << 20
"""Bounds of one run: seconds of a processor, bytes of address space, bytes of text."""
PATIENCE = 1200
"""Seconds by the clock for a run that does not compute; far off, since machines are busy."""


_READER = ("NVIDIA's tool that reads cubins", "fasttrack-decode[audit]")
_ASSEMBLER = ("NVIDIA's tool that makes cubins", "nvidia-cuda-nvcc")
_FROM = {"nvdisasm": _READER, "cuobjdump": _READER, "ptxas": _ASSEMBLER}
"""What each tool is, and the package that brings it; the second is for PTX alone."""


def path_of(tool: str) -> str:
    """Where one of NVIDIA's tools is: beside this installation, else on the search path.

    Raises:
        InputError: it is in neither place.
    """
    for place in _package_folders():
        for found in sorted(Path(place).glob(f"cu*/bin/{tool}"), reverse=True):
            return str(found)
    on_path = shutil.which(tool)
    if on_path is None:
        what, package = _FROM.get(tool, _ASSEMBLER)
        raise InputError.one(tool, "not installed", what, f"pip install '{package}'")
    return on_path


def _package_folders() -> Iterable[str]:
    """Where NVIDIA's packages of this installation lie."""
    spec = importlib.util.find_spec("nvidia")
    return () if spec is None else spec.submodule_search_locations or ()


def _bound() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (OUTPUT, OUTPUT))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def ask(tool: str, options: tuple[str, ...], data: bytes) -> str:
    """What `tool options FILE` prints of a file with these bytes.

    Raises:
        InputError: the tool is not installed.
        FactUnavailable: it refuses the file, crashes, or breaks a bound.
    """
    with tempfile.TemporaryDirectory(prefix="fasttrack-audit-") as folder:
        file, said = Path(folder, "kernel"), Path(folder, "said")
        file.write_bytes(data)
        _run((path_of(tool), *options, str(file)), said)
        return said.read_bytes().decode("utf-8", "replace")


def assemble(text: bytes, arch: str) -> bytes:
    """The cubin that `ptxas` makes of PTX for an architecture.

    Raises:
        InputError: `ptxas` is not installed.
        FactUnavailable: it refuses the text, crashes, or breaks a bound.
    """
    with tempfile.TemporaryDirectory(prefix="fasttrack-audit-") as folder:
        file, made = Path(folder, "kernel"), Path(folder, "made")
        file.write_bytes(text)
        command = (path_of("ptxas"), f"-arch={arch}", "-lineinfo", "-o", str(made), str(file))
        _run(command, Path(folder, "said"))
        return made.read_bytes()


def _run(command: tuple[str, ...], said: Path) -> None:
    tool = Path(command[0]).name
    with said.open("wb") as out:
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE,
                timeout=PATIENCE, preexec_fn=_bound, check=False, env={"LC_ALL": "C"},
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise FactUnavailable(f"{tool} took more than {PATIENCE} s by the clock") from error
    if done.returncode == -signal.SIGXCPU:
        raise FactUnavailable(f"{tool} took more than {SECONDS} s")
    if done.returncode != 0:
        text = done.stderr.decode("utf-8", "replace").replace(command[-1], "the file")
        lines = (" ".join(line.split()) for line in text.split("\n"))
        why = next(filter(None, lines), f"exit status {done.returncode}")
        raise FactUnavailable(f"{tool} can not read it: {why[:200]}")

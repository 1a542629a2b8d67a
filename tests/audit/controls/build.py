# SPDX-License-Identifier: Apache-2.0
"""Compiles kernels with nvcc, and packs cubins so that the same inputs give the same bytes."""

import hashlib
import io
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from fasttrack.audit.read.tools import path_of

from .table import ARCHES, HERE, THEMES

DIGESTS = HERE / "digests.yaml"
COMPILER = "13.0.88"
"""Release of nvcc, ptxas and nvvm that made the stored cubins."""


def compile_source(source: Path, arch: str) -> bytes:
    """The cubin of a source file; warnings are errors, or a kernel is not what it seems."""
    nvcc = Path(path_of("nvcc"))
    with tempfile.TemporaryDirectory(prefix="audit-controls-") as folder:
        made = Path(folder, "made.cubin")
        done = subprocess.run(
            [
                nvcc, f"-arch={arch}", "-cubin", "-Werror", "all-warnings",
                "-diag-suppress", "177,550",  # what is declared or set and never used
                f"-I{nvcc.parents[1] / 'include'}", "-o", made, source.name,
            ],
            cwd=source.parent, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"nvcc refuses {source.name} for {arch}:\n{done.stderr}")
        return made.read_bytes()


def pack(files: Mapping[str, bytes]) -> bytes:
    """A .tar.xz of files, without times or owners."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz", preset=9) as archive:
        for name, data in sorted(files.items()):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return packed.getvalue()


def digests(files: Iterable[Path]) -> dict[str, str]:
    """SHA-256 of each file, by its name."""
    return {one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in sorted(files)}


def sources() -> tuple[Path, ...]:
    """Everything that the cubins depend on but the compiler."""
    return (HERE / "common.cuh", *(HERE / f"{theme}.cu" for theme in THEMES))


def cubins() -> dict[str, bytes]:
    """Every theme on every architecture, compiled now."""
    return {
        f"{theme}.{arch}.cubin": compile_source(HERE / f"{theme}.cu", arch)
        for theme in THEMES
        for arch in ARCHES
    }

# SPDX-License-Identifier: Apache-2.0
"""Compiles variants to cubins, on any machine, and keeps them by what they were compiled from.

What the audit reads, what ships and what runs are one file: a cubin is compiled once, with fake
tensors, and loaded as it is. Compilers of one DSL version differ by what they were packaged for, so
one package is named here, and every other one is refused.
"""

import importlib
import json
import re
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import Any

from fasttrack.errors import InputError
from fasttrack.manifest.variants import Variant

DSL, DSL_VERSION, DSL_COMPILER = "nvidia-cutlass-dsl", "4.8.1", "nvidia-cutlass-dsl-libs-cu13"
INSTALL = f"pip install '{DSL}[cu13]=={DSL_VERSION}'"
OPTIONS = "--keep-ptx --keep-cubin"
SHARED_SOURCES = ("shapes.py", "sync.py", "wait.py")
"""Files of this package that kernels are made of besides their own folder."""
OWN_SOURCES = ("kernel.py", "shape.py")
"""Files of a kernel's folder that it is made of."""
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
MOST_TOLD = 300
CUBIN, PTX, RECORD = "kernel.cubin", "kernel.ptx", "build.json"
HERE = Path(__file__).parent
PACKAGE = __package__


@dataclass(frozen=True)
class Built:
    """A variant's machine code.

    Attributes:
        folder: where it is kept.
        entry: the kernel's symbol.
        seconds: what compiling took, when it was compiled.
    """

    folder: Path
    entry: str
    seconds: float

    @cached_property
    def cubin(self) -> bytes:
        """The machine code."""
        return (self.folder / CUBIN).read_bytes()

    @cached_property
    def digest(self) -> str:
        """Its SHA-256, by which build, audit and launch name it."""
        return sha256(self.cubin).hexdigest()


def default_cache() -> Path:
    """Where cubins are kept when nobody says otherwise."""
    return Path.home() / ".cache" / "kimi-k3" / "kernels"


def build(kernel: str, variant: Variant, cache: Path) -> Built:
    """A variant's cubin, out of the cache or compiled now.

    Args:
        kernel: the folder of its kernel.
        variant: a row of the kernel's table.
        cache: where cubins are kept; made when it is not there.

    Raises:
        InputError: the DSL that is named here is not installed, the kernel does not compile, or the
            cache holds other bytes than were compiled.
    """
    folder = cache / key_of(kernel, variant)
    if not (folder / RECORD).is_file():
        _compile_into(folder, kernel, variant)
    return _read(folder)


def cached(kernel: str, variant: Variant, cache: Path) -> Built | None:
    """A variant's cubin if the cache has it; nothing is compiled.

    Args:
        kernel: the folder of its kernel.
        variant: a row of the kernel's table.
        cache: where cubins are kept.

    Raises:
        InputError: the cache holds other bytes than were compiled.
    """
    folder = cache / key_of(kernel, variant)
    return _read(folder) if (folder / RECORD).is_file() else None


def _read(folder: Path) -> Built:
    record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    built = Built(folder, record["entry"], record["seconds"])
    if built.digest != record["sha256"]:
        raise InputError.one(
            str(folder / CUBIN), "other bytes than were compiled", "the same", f"rm -r {folder}"
        )
    return built


def key_of(kernel: str, variant: Variant) -> str:
    """The name of a variant's folder in a cache: what its machine code follows from.

    Args:
        kernel: the folder of its kernel.
        variant: a row of the kernel's table.
    """
    sources = [HERE / name for name in (*SHARED_SOURCES, *(f"{kernel}/{n}" for n in OWN_SOURCES))]
    made_of = {
        "compiler": [DSL, DSL_VERSION, DSL_COMPILER],
        "options": OPTIONS,
        "arch": variant.arch,
        "kernel": kernel,
        "parameters": dict(parameters_of(variant)),
        "sources": {p.relative_to(HERE).as_posix(): _digest(p) for p in sources},
    }
    return sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest()


def parameters_of(variant: Variant) -> Mapping[str, Any]:
    """What a variant's code is compiled for, beside its architecture."""
    own = variant.model_extra or {}
    return {name: value for name, value in own.items() if name != "audit"}


def require_dsl() -> None:
    """Refuses every compiler but one, as others make other machine code of the same source.

    Raises:
        InputError: it is not installed, or another one is.
    """
    for package in (DSL, DSL_COMPILER):
        try:
            found = metadata.version(package)
        except metadata.PackageNotFoundError:
            found = "not installed"
        if found != DSL_VERSION:
            raise InputError.one(package, found, DSL_VERSION, INSTALL)


def _compile_into(folder: Path, kernel: str, variant: Variant) -> None:
    require_dsl()
    folder.parent.mkdir(parents=True, exist_ok=True)
    # The DSL leaves files of its own, so that it gets a folder; a whole one appears at once.
    made = Path(tempfile.mkdtemp(prefix="building-", dir=folder.parent))
    try:
        started = time.monotonic()
        ptx, cubin = _compiled(kernel, variant, made / "dump")
        seconds = round(time.monotonic() - started, 2)
        shutil.rmtree(made / "dump", ignore_errors=True)
        (made / CUBIN).write_bytes(cubin)
        (made / PTX).write_text(ptx, encoding="utf-8")
        record = {"entry": entry_of(ptx), "seconds": seconds, "variant": variant.id}
        record["sha256"] = sha256(cubin).hexdigest()
        (made / RECORD).write_text(json.dumps(record), encoding="utf-8")
        try:
            made.rename(folder)
        except OSError:  # another process was faster, with the same bytes
            if not (folder / RECORD).is_file():
                raise
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _compiled(kernel: str, variant: Variant, dump: Path) -> tuple[str, bytes]:
    from cutlass import cute  # noqa: PLC0415  (a large package, wanted only to compile)

    module = importlib.import_module(f"{PACKAGE}.{kernel}.kernel")
    dump.mkdir()
    options = f"{OPTIONS} --dump-dir {dump} --gpu-arch {variant.arch}"
    try:
        function, fakes = module.compiled(parameters_of(variant))
        artifacts = cute.compile(function, *fakes, options=options).artifacts
    except Exception as error:
        raise InputError.one(
            f"variant {variant.id}", _told(error), "a kernel that compiles"
        ) from error
    return str(artifacts.PTX), bytes(artifacts.CUBIN)


def _told(error: Exception) -> str:
    """An error in one line; the DSL's have several, and colours."""
    lines = COLOUR.sub("", str(error)).splitlines()
    words = " ".join(line.strip() for line in lines if line.strip(" -|^"))
    return f"{type(error).__name__}: {words[:MOST_TOLD]}"


def entry_of(ptx: str) -> str:
    """The symbol of the one kernel of a PTX text.

    Raises:
        InputError: it has another number of kernels.
    """
    found = [
        line.split(".entry")[1].split("(")[0].strip()
        for line in ptx.splitlines()
        if ".entry " in line
    ]
    if len(found) != 1:
        raise InputError.one("PTX", f"{len(found)} kernels", "one")
    return found[0]


def _digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()

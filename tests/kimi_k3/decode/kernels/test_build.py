# SPDX-License-Identifier: Apache-2.0
"""What a cubin is kept by, and who may compile it. No compiler is needed here."""

import json
import shutil
from hashlib import sha256
from importlib import metadata
from pathlib import Path

import pytest

from fasttrack.errors import InputError
from fasttrack.manifest.variants import Variant
from kimi_k3.decode.kernels import build as building
from kimi_k3.decode.kernels.build import (
    DSL,
    DSL_COMPILER,
    DSL_VERSION,
    OWN_SOURCES,
    SHARED_SOURCES,
    build,
    cached,
    entry_of,
    key_of,
    require_dsl,
)
from kimi_k3.decode.kernels.catalogue import candidate, table
from kimi_k3.decode.kernels.registry import KERNELS

ATTN_RES = "attn_res"
ROW = table(ATTN_RES).variants[0]
CODE = b"\x7fELF and so on"


def changed(row: Variant, **fields: object) -> Variant:
    return row.model_copy(update=fields)


def stored(cache: Path, row: Variant) -> Path:
    """A cache that has some code for a row."""
    folder = cache / key_of(ATTN_RES, row)
    folder.mkdir(parents=True)
    (folder / "kernel.cubin").write_bytes(CODE)
    record = {"entry": "mix", "seconds": 0.5, "sha256": sha256(CODE).hexdigest()}
    (folder / "build.json").write_text(json.dumps(record))
    return folder


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The package's files, to be changed."""
    there = tmp_path / "kernels"
    shutil.copytree(building.HERE, there)
    monkeypatch.setattr(building, "HERE", there)
    return there


@pytest.fixture
def no_dsl(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(package: str) -> str:
        raise metadata.PackageNotFoundError(package)

    monkeypatch.setattr(metadata, "version", version)


def test_every_folder_with_a_kernel_is_in_the_registry() -> None:
    assert {path.parent.name for path in building.HERE.glob("*/kernel.py")} == set(KERNELS)


@pytest.mark.usefixtures("no_dsl")
def test_what_the_cache_has_needs_no_compiler(tmp_path: Path) -> None:
    folder = stored(tmp_path, ROW)
    found = candidate(ATTN_RES, ROW, tmp_path)
    assert found.built.folder == folder
    assert (found.built.entry, found.built.cubin) == ("mix", CODE)
    assert found.built.digest == sha256(CODE).hexdigest()


def test_nothing_is_compiled_to_find_out_what_is_cached(tmp_path: Path) -> None:
    assert cached(ATTN_RES, ROW, tmp_path) is None
    stored(tmp_path, ROW)
    found = cached(ATTN_RES, ROW, tmp_path)
    assert found is not None
    assert found.seconds == 0.5


def test_code_that_was_changed_in_the_cache_is_refused(tmp_path: Path) -> None:
    folder = stored(tmp_path, ROW)
    (folder / "kernel.cubin").write_bytes(CODE[:-1])
    for find in (cached, build):
        with pytest.raises(InputError, match=r"saw other bytes than were compiled; .* fix: rm -r"):
            find(ATTN_RES, ROW, tmp_path)


def test_who_comes_second_takes_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def meanwhile(*_: object) -> tuple[str, bytes]:
        stored(tmp_path, ROW)
        return ".visible .entry other(\n", b"compiled for nothing"

    monkeypatch.setattr(building, "require_dsl", lambda: None)
    monkeypatch.setattr(building, "_compiled", meanwhile)
    found = build(ATTN_RES, ROW, tmp_path)
    assert (found.entry, found.cubin) == ("mix", CODE)
    assert [*tmp_path.iterdir()] == [found.folder]


def test_what_was_compiled_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def compiled(kernel: str, variant: Variant, _: Path) -> tuple[str, bytes]:
        calls.append((kernel, variant.id))
        return ".visible .entry mix_0(\n", CODE

    monkeypatch.setattr(building, "require_dsl", lambda: None)
    monkeypatch.setattr(building, "_compiled", compiled)
    first, second = (build(ATTN_RES, ROW, tmp_path) for _ in range(2))
    assert calls == [(ATTN_RES, ROW.id)]
    assert first == second
    assert (first.entry, first.cubin) == ("mix_0", CODE)
    assert (first.folder / "kernel.ptx").is_file()


def test_rows_that_differ_in_name_and_ranks_alone_are_one_code() -> None:
    same = changed(ROW, id="other", tp=16, rows=(5, 6), audit=None)
    assert key_of(ATTN_RES, same) == key_of(ATTN_RES, ROW)


@pytest.mark.parametrize("field", ["arch", "cluster", "vectors", "hidden", "most", "eps", "normed"])
def test_each_parameter_makes_another_code(field: str) -> None:
    assert key_of(ATTN_RES, changed(ROW, **{field: "sm_121a"})) != key_of(ATTN_RES, ROW)


@pytest.mark.parametrize("name", [*SHARED_SOURCES, *(f"{ATTN_RES}/{own}" for own in OWN_SOURCES)])
def test_one_byte_of_a_source_makes_another_code(name: str, copied: Path) -> None:
    before = key_of(ATTN_RES, ROW)
    with (copied / name).open("ab") as file:
        file.write(b"\n")
    assert key_of(ATTN_RES, ROW) != before


@pytest.mark.parametrize("name", ["DSL_VERSION", "DSL_COMPILER", "OPTIONS"])
def test_another_compiler_makes_another_code(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = key_of(ATTN_RES, ROW)
    monkeypatch.setattr(building, name, "other")
    assert key_of(ATTN_RES, ROW) != before


def test_a_kernel_is_made_of_no_file_that_its_key_leaves_out() -> None:
    """What the modules of a kernel import of this package."""
    known = {f"{ATTN_RES}/{own}" for own in OWN_SOURCES} | set(SHARED_SOURCES)
    for name in known:
        lines = (building.HERE / name).read_text(encoding="utf-8").splitlines()
        for line in lines:
            if line.startswith(f"from {building.PACKAGE}."):
                module = line.split()[1].removeprefix(f"{building.PACKAGE}.")
                assert f"{module.replace('.', '/')}.py" in known, line


@pytest.mark.usefixtures("no_dsl")
def test_without_the_dsl_it_is_said_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        build(ATTN_RES, ROW, tmp_path)
    assert str(refused.value) == (
        "nvidia-cutlass-dsl: saw not installed; want 4.8.1; "
        "fix: pip install 'nvidia-cutlass-dsl[cu13]==4.8.1'"
    )
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    ("installed", "told"),
    [
        ({DSL: "4.8.0", DSL_COMPILER: "4.8.0"}, f"{DSL}: saw 4.8.0; want 4.8.1"),
        ({DSL: DSL_VERSION}, f"{DSL_COMPILER}: saw not installed; want 4.8.1"),
        ({DSL: DSL_VERSION, DSL_COMPILER: "4.9"}, f"{DSL_COMPILER}: saw 4.9; want 4.8.1"),
    ],
    ids=["another version", "another flavour", "a mixture"],
)
def test_another_dsl_is_refused(
    installed: dict[str, str], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(package: str) -> str:
        if package not in installed:
            raise metadata.PackageNotFoundError(package)
        return installed[package]

    monkeypatch.setattr(metadata, "version", version)
    with pytest.raises(InputError, match=told):
        require_dsl()


@pytest.mark.parametrize(
    ("ptx", "count"), [("", 0), (".visible .entry a(\n.visible .entry b(\n", 2)]
)
def test_machine_code_of_another_number_of_kernels_is_refused(ptx: str, count: int) -> None:
    with pytest.raises(InputError, match=f"{count} kernels; want one"):
        entry_of(ptx)


def test_the_entry_is_the_symbol_of_the_kernel() -> None:
    assert (
        entry_of(".func x()\n.visible .entry kernel_mix_0(\n\t.param .b8 a[8]\n)") == "kernel_mix_0"
    )

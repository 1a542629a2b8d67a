# SPDX-License-Identifier: Apache-2.0
"""`kimi-k3 kernels`, where there is no compiler: what is cached is listed, all else is said."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from fasttrack.errors import InputError
from kimi_k3.cli import cli
from kimi_k3.decode.kernels.catalogue import table
from kimi_k3.decode.kernels.registry import KERNELS
from tests.kimi_k3.decode.kernels.test_build import ROW, no_dsl, stored

__all__ = ["no_dsl"]


def said(*arguments: str) -> str:
    result = CliRunner().invoke(cli, ["kernels", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_list_tells_every_variant_and_what_building_took(tmp_path: Path) -> None:
    stored(tmp_path, ROW)
    lines = said("list", "--cache", str(tmp_path)).splitlines()
    variants = [row for kernel in KERNELS for row in table(kernel).variants]
    assert [line.split()[0] for line in lines[:-1]] == [row.id for row in variants]
    assert lines[0].split("  ")[-1] == "0.50 s"
    assert lines[1].endswith("not built")
    assert lines[-1] == f"{len(variants)} variants, 1 cubins built in 0.50 s"


def test_list_says_the_same_to_programs(tmp_path: Path) -> None:
    stored(tmp_path, ROW)
    read = json.loads(said("list", "--cache", str(tmp_path), "--format", "json"))
    assert (read["version"], read["cubins"], read["seconds"]) == (1, 1, 0.5)
    first, second = read["variants"][:2]
    assert (first["variant"], first["arch"], first["tp"]) == (ROW.id, ROW.arch, ROW.tp)
    assert first["shape"]["cluster"] == 7
    assert (len(first["sha256"]), second["sha256"], second["seconds"]) == (64, None, None)


def test_only_what_is_asked_for_is_listed(tmp_path: Path) -> None:
    one = said("list", "--cache", str(tmp_path), "--variant", ROW.id)
    assert one.splitlines()[-1] == "1 variants, 0 cubins built in 0.00 s"
    arch = said("list", "--cache", str(tmp_path), "--arch", "sm_103a").splitlines()
    assert len(arch) - 1 == sum(row.arch == "sm_103a" for row in table("attn_res").variants)


@pytest.mark.usefixtures("no_dsl")
@pytest.mark.parametrize("command", ["build", "audit"])
def test_without_a_compiler_it_is_said_what_to_install(command: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"fix: pip install 'nvidia-cutlass-dsl\[cu13\]==4.8.1'"):
        said(command, "--cache", str(tmp_path))


@pytest.mark.parametrize(("option", "value"), [("--arch", "sm_91"), ("--variant", "mix")])
def test_what_is_not_there_is_refused_with_what_is(option: str, value: str) -> None:
    with pytest.raises(InputError, match=f"{option}: saw {value}; want one of"):
        said("list", option, value)


@pytest.mark.parametrize("options", [[], ["--output", "x.json", "--prepare", "sm_90a"]])
def test_tune_measures_or_prepares(options: list[str]) -> None:
    with pytest.raises(InputError, match="want --output or --prepare"):
        said("tune", *options)


def test_variants_are_listed_without_a_compiler_and_without_torch(tmp_path: Path) -> None:
    code = (
        "import sys; from click.testing import CliRunner; from kimi_k3.cli import cli; "
        f"done = CliRunner().invoke(cli, ['kernels', 'list', '--cache', {str(tmp_path)!r}]); "
        "print(done.exit_code, *sorted({'torch', 'cutlass', 'cuda', 'numpy'} & {*sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "0\n"

# SPDX-License-Identifier: Apache-2.0
"""A wheel holds the code, the manifests and the tiers beside it, built from a clone or an sdist."""

import json
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fasttrack.cli.main import run
from fasttrack.manifest.load import load_manifest
from fasttrack.vocabulary import Tier

ROOT = Path(__file__).resolve().parents[1]
SAFELY: Mapping[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
"""Python 3.11 has the filter from a late patch on, and 3.14 wants it."""
BUILT_FROM = ("fasttrack", "kimi_k3", "manifests")
PACKAGED = "kimi_k3/manifests/"
BORNE_OUT = {"kimi-k3-decode": {"gb300-tp8": "stress-tested"}}
ASK = """\
import json, sys
sys.path.insert(0, sys.argv[1])
from kimi_k3.decode.packaged import packaged_effective, packaged_manifest
import kimi_k3
tiers = {region: tier.value for region, tier in packaged_effective("kimi-k3-decode").items()}
print(json.dumps([kimi_k3.__file__, packaged_manifest().name, tiers]))
"""
"""What a gate of the wheel sees, from another folder and without this checkout."""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What wheels are built from, without whatever lies in this checkout beside it."""
    where = tmp_path_factory.mktemp("source")
    skip = shutil.ignore_patterns("__pycache__", "effective.json")
    for folder in BUILT_FROM:
        shutil.copytree(ROOT / folder, where / folder, ignore=skip)
    for name in (".gitignore", "LICENSE", "README.md", "pyproject.toml"):
        shutil.copy(ROOT / name, where / name)
    (where / "manifests/evidence").mkdir(exist_ok=True)
    for name in ("a.dsse.jsonl", "a.dsse.jsonl.gz"):
        (where / "manifests/evidence" / name).write_text("{}\n")
    return where


def built(source: Path, target: str, where: Path) -> Path:
    """One distribution, built as pip does it but without isolation."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(where)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (made,) = where.iterdir()
    return made


def files(wheel: Path) -> dict[str, bytes]:
    """Path to content; no path twice."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert len(names) == len(set(names))
        return {name: archive.read(name) for name in names}


def wanted(effective: bytes | None) -> dict[str, bytes]:
    """Every manifest, the policy, the keys, and the tiers where there are any."""
    found = [*(ROOT / "manifests").glob("*.yaml"), *(ROOT / "manifests/keys").iterdir()]
    names = {p.relative_to(ROOT / "manifests").as_posix(): p.read_bytes() for p in found}
    return names | ({"effective.json": effective} if effective is not None else {})


def packaged(held: Mapping[str, bytes]) -> dict[str, bytes]:
    """What a wheel holds of `manifests/`."""
    return {n.removeprefix(PACKAGED): b for n, b in held.items() if n.startswith(PACKAGED)}


def seen(wheel: Path, where: Path) -> tuple[str, str, dict[str, str]]:
    """Where the package of an unpacked wheel is, its manifest's name, and its tiers."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(where)
    command = [sys.executable, "-c", ASK, str(where)]
    told = subprocess.run(command, cwd=where, check=True, capture_output=True, text=True).stdout
    found: tuple[str, str, dict[str, str]] = json.loads(told)
    return found


def test_the_wheel_holds_code_schemas_templates_and_manifests(source: Path, tmp_path: Path) -> None:
    held = files(built(source, "wheel", tmp_path))
    assert packaged(held) == wanted(None)
    code = [n for n in held if ".dist-info/" not in n and not n.startswith(PACKAGED)]
    ours = [p for name in ("fasttrack", "kimi_k3") for p in (source / name).rglob("*")]
    assert sorted(code) == sorted(p.relative_to(source).as_posix() for p in ours if p.is_file())
    assert {"fasttrack/py.typed", "fasttrack/adopt/templates/policy.yaml"} <= held.keys()


def test_a_manifest_that_is_added_gets_into_the_wheel_without_a_list(
    source: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "source"
    shutil.copytree(source, copy)
    (copy / "manifests/another.yaml").write_text("manifest: 1\n")
    held = files(built(copy, "wheel", tmp_path / "out"))
    assert packaged(held) == wanted(None) | {"another.yaml": b"manifest: 1\n"}


@pytest.mark.parametrize("through", ["clone", "sdist"])
@pytest.mark.parametrize("borne_out", [True, False], ids=["with-tiers", "without"])
def test_the_gate_of_a_wheel_knows_the_tiers_that_were_there_when_it_was_built(
    source: Path, tmp_path: Path, through: str, borne_out: bool
) -> None:
    copy = tmp_path / "source"
    shutil.copytree(source, copy)
    effective = json.dumps({"manifests": BORNE_OUT}).encode()
    if borne_out:
        (copy / "manifests/effective.json").write_bytes(effective)
    if through == "sdist":
        with tarfile.open(built(copy, "sdist", tmp_path / "sdist")) as archive:
            archive.extractall(tmp_path / "unpacked", **SAFELY)
        (copy,) = (tmp_path / "unpacked").iterdir()
    wheel = built(copy, "wheel", tmp_path / "wheel")
    assert packaged(files(wheel)) == wanted(effective if borne_out else None)
    place, name, tiers = seen(wheel, tmp_path / "installed")
    assert Path(place).is_relative_to(tmp_path / "installed")
    assert name == "kimi-k3-decode"
    assert tiers == (BORNE_OUT["kimi-k3-decode"] if borne_out else {})


def test_what_the_command_writes_is_what_the_gate_reads(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "source"
    shutil.copytree(source, copy)
    effective = str(copy / "manifests/effective.json")
    assert run(["scope", "docs", "--repo", str(copy), "--effective", effective]) == 0
    capsys.readouterr()
    _, name, tiers = seen(built(copy, "wheel", tmp_path / "wheel"), tmp_path / "installed")
    manifest = load_manifest((copy / f"manifests/{name}.yaml").read_bytes(), name)
    assert tiers == {region.id: Tier.DECLARED.value for region in manifest.scope}


def test_an_editable_installation_reads_the_checkout_alone(source: Path, tmp_path: Path) -> None:
    held = files(built(source, "wheel:editable", tmp_path))
    paths = [data.decode().strip() for name, data in held.items() if name.endswith(".pth")]
    assert [Path(path).resolve() for path in paths] == [source.resolve()]
    assert packaged(held) == {}

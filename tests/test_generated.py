# SPDX-License-Identifier: Apache-2.0
"""Generated files are what their generator makes."""

import importlib.metadata
import runpy
import tomllib
from pathlib import Path

import jsonschema
import pytest

from fasttrack.report.schemas import SCHEMAS

ROOT = Path(__file__).resolve().parents[1]
GENERATOR = runpy.run_path(str(ROOT / "scripts/generate.py"))
GENERATED = GENERATOR["generated"]()


@pytest.mark.parametrize("path", sorted(GENERATED))
def test_a_generated_file_is_up_to_date(path: str) -> None:
    assert (ROOT / path).read_text("utf-8") == GENERATED[path], "run scripts/generate"


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_a_schema_is_a_valid_schema_and_describes_every_field(name: str) -> None:
    schema = SCHEMAS[name]()
    jsonschema.Draft202012Validator.check_schema(schema)
    records = [schema, *schema["$defs"].values()]
    undescribed = [
        f"{record.get('title')}.{field}"
        for record in records
        for field, value in record.get("properties", {}).items()
        if "description" not in value
    ]
    assert undescribed == []


def test_the_licences_listed_are_those_of_the_installed_packages() -> None:
    packages = tomllib.loads((ROOT / "third_party.toml").read_text("utf-8"))["packages"]
    compared = 0
    for name, entry in packages.items():
        try:
            metadata = importlib.metadata.metadata(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # comes with an extra that the tests do not need
        stated = (
            metadata.get("License-Expression")
            or metadata.get("License")
            or " ".join(metadata.get_all("Classifier") or ())
        )
        compared += 1
        assert entry["licence"].split("-")[0] in stated, f"{name}: {stated}"
    assert compared >= 10


def test_every_listed_package_is_a_declared_dependency() -> None:
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    project = pyproject["project"]
    declared = [
        *project["dependencies"],
        *(r for extra in project["optional-dependencies"].values() for r in extra),
        *pyproject["build-system"]["requires"],
    ]
    names = {GENERATOR["package_name"](requirement) for requirement in declared}
    packages = tomllib.loads((ROOT / "third_party.toml").read_text("utf-8"))["packages"]
    assert names == set(packages)

# SPDX-License-Identifier: Apache-2.0
"""The inputs of a unit for people and programs."""

import json
from collections.abc import Iterator, Sequence

from fasttrack.evidence.digest import InputFile
from fasttrack.evidence.inputs import UnitInputs
from fasttrack.report.visible import visible


def inputs_text(inputs: UnitInputs, manifest: str, commit: str) -> str:
    """Both digests, then every input with the reason why it is one."""
    return "\n".join(_lines(inputs, manifest, commit)) + "\n"


def inputs_json(inputs: UnitInputs, manifest: str, commit: str) -> str:
    """The same as one JSON object."""
    whole = {
        "unit": inputs.unit,
        "manifest": manifest,
        "commit": commit,
        "digest": inputs.digest,
        "tests_digest": inputs.tests_digest,
        "files": _records(inputs.files),
        "tests": _records(inputs.tests),
        "boundary": _records(inputs.boundary),
    }
    return json.dumps(whole, indent=2, sort_keys=True) + "\n"


def _lines(inputs: UnitInputs, manifest: str, commit: str) -> Iterator[str]:
    yield f"unit {inputs.unit} of {manifest} at {commit[:12]}"
    yield f"digest        {inputs.digest}"
    yield f"tests digest  {inputs.tests_digest}"
    yield from _section("files", inputs.files)
    yield from _section("tests", inputs.tests)
    yield from _section("boundary, in no digest", inputs.boundary)


def _section(title: str, files: Sequence[InputFile]) -> Iterator[str]:
    yield ""
    yield f"{title}: {len(files)}"
    for file in files:
        yield f"  {visible(file.path)}"
        yield f"    {visible(file.reason)}"


def _records(files: Sequence[InputFile]) -> list[dict[str, str]]:
    return [
        {"path": file.path, "mode": file.mode, "sha256": file.sha256, "reason": file.reason}
        for file in files
    ]

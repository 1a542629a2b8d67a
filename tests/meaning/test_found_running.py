# SPDX-License-Identifier: Apache-2.0
"""What was tried against the executed part in the attack round, and what came of it.

`tests/cases/meaning/found/running/` holds the tries and says what their fields mean. What gets by
today is kept as such, so that the day on which that changes is seen.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from fasttrack.executed import probe as probe_module
from fasttrack.executed.base_tests import run_base_tests
from fasttrack.executed.probe import import_probe
from tests.executed.scratch import TIMEOUT_S, sandboxed, silent

from .corpus import FOLDER, KERNELS, Made, project
from .judged import case_of

TEST = """
from host.fast import kernels
from reference import oracle


def test_step():
    assert kernels.step([1.0]) == oracle.step([1.0])
"""


@sandboxed
def test_what_the_probe_sees_is_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe_module, "WATCHED", 100)
    kept = _running("probe")
    names = {f"host/fast/try{n:02}.py": name for n, name in enumerate(kept)}
    shared = {p: text for data in kept.values() for p, text in data.get("base", {}).items()}
    base = {**project(), **shared}
    modules = {path: kept[name]["code"] for path, name in names.items()}

    probe = import_probe(case_of(Made(base, modules)), TIMEOUT_S, silent)

    seen = {names[d.path] for d in probe.differences}
    assert probe.unknown == ()
    assert {n: "seen" if n in seen else "unseen" for n in kept} == _outcomes(kept)


@sandboxed
def test_what_the_sandbox_refuses_is_what_is_kept(tmp_path: Path) -> None:
    kept = _running("sandbox")
    outside = tmp_path / "outside.txt"
    outside.write_text("kept", encoding="utf-8")
    tried = [f"attempt(lambda: {data['do']})\n" for data in kept.values()]
    kernels = f"OUTSIDE = {str(outside)!r}\n{_ATTEMPTS}{''.join(tried)}raise Told(said)\n"

    probe = import_probe(case_of(Made(project(), {KERNELS: kernels})), TIMEOUT_S, silent)

    (unknown,) = [u.reason for u in probe.unknown if "Told: " in u.reason]
    signs = unknown.partition("Told: ")[2]
    done = [{"+": "done", "-": "refused"}[sign] for sign in signs]
    assert dict(zip(kept, done, strict=True)) == _outcomes(kept)
    assert [file.name for file in tmp_path.iterdir()] == [outside.name]
    assert outside.read_text(encoding="utf-8") == "kept"


@sandboxed
def test_what_the_target_branchs_tests_come_to_is_what_is_kept() -> None:
    kept = _running("base_tests")
    base = {**project(), "tests/test_step.py": TEST}

    came_to = {
        name: run_base_tests(case_of(Made(base, data["files"])), TIMEOUT_S, silent).run
        for name, data in kept.items()
    }
    assert came_to == _outcomes(kept)


_ATTEMPTS = """
import ctypes
import os
import resource
import socket

JUDGE = os.getppid()
LIBC = ctypes.CDLL(None, use_errno=True)
said = ""


class Told(Exception):
    pass


def called(number):
    if number < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return number


def changed(look, act):
    before = look()
    act()
    if look() == before:
        raise OSError("nothing happened")


def attempt(act):
    global said
    try:
        act()
        said += "+"
    except OSError:
        said += "-"


"""


def _running(name: str) -> Mapping[str, Mapping[str, Any]]:
    text = (FOLDER / "found" / "running" / f"{name}.yaml").read_text("utf-8")
    data = yaml.load(text, Loader=yaml.CSafeLoader)
    assert isinstance(data, dict)
    return data


def _outcomes(kept: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    return {name: data.get("now", data["first"]) for name, data in kept.items()}

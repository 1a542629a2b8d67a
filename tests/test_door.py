# SPDX-License-Identifier: Apache-2.0
"""Where a command line ends: an output that nobody takes or keeps is never taken for an answer."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import click
import pytest

from fasttrack import door
from fasttrack.errors import FactUnavailable, InputError

PROGRAMS = ("fasttrack", "kimi_k3")
SPOKEN = {"fasttrack": "fasttrack", "kimi_k3": "kimi-k3"}
FULL = Path("/dev/full")


def program(
    package: str, *arguments: str, out: int, err: int, buffered: bool = True
) -> tuple[int, str]:
    """Exit code of one command, and what it said on an error stream of its own."""
    done = subprocess.run(
        [sys.executable, "-m", package, *arguments],
        stdout=out,
        stderr=err,
        env=os.environ | {"PYTHONUNBUFFERED": "" if buffered else "1"},
        text=True,
        check=False,
    )
    return done.returncode, done.stderr or ""


def closed_pipe() -> int:
    """The end to write to of a pipe that nobody reads."""
    read, write = os.pipe()
    os.close(read)
    return write


@pytest.mark.parametrize("buffered", [True, False])
@pytest.mark.parametrize("package", PROGRAMS)
def test_a_pipe_that_nobody_reads_ends_a_command_quietly_and_not_with_an_answer(
    package: str, buffered: bool
) -> None:
    pipe = closed_pipe()
    code, said = program(package, "--help", out=pipe, err=subprocess.PIPE, buffered=buffered)
    os.close(pipe)
    assert (code, said) == (141, "")


@pytest.mark.parametrize("package", PROGRAMS)
def test_problems_that_nobody_reads_end_a_command_in_the_same_way(package: str) -> None:
    pipe = closed_pipe()
    code, _ = program(package, "scope", "nonsense", out=pipe, err=pipe)
    os.close(pipe)
    assert code == 141


@pytest.mark.parametrize("package", PROGRAMS)
def test_an_output_that_can_not_be_kept_is_a_fault_and_not_an_answer(package: str) -> None:
    with FULL.open("w") as full:
        code, said = program(package, "--help", out=full.fileno(), err=subprocess.PIPE)
        silent, _ = program(package, "--help", out=full.fileno(), err=full.fileno())
    name = SPOKEN[package]
    *_, cause, blank, words, versions = said.splitlines()
    assert (code, silent) == (70, 70)
    assert cause == "OSError: [Errno 28] No space left on device"
    assert blank == ""
    assert words.startswith(f"This is a fault of {name}, not of your change or input.")
    assert versions.startswith(f"{name} ")


@click.group()
def group() -> None:
    pass


def answer(what: Callable[[], object], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Exit code and error stream of a command that does `what`."""
    group.add_command(click.Command("do", callback=what))
    code = door.run(group, "prog", ["do"], shown=str.upper)
    said = capsys.readouterr()
    assert said.out == ""
    return code, said.err


def raising(error: BaseException) -> Callable[[], NoReturn]:
    def command() -> NoReturn:
        raise error

    return command


@pytest.mark.parametrize(
    ("what", "code", "said"),
    [
        (lambda: None, 0, ""),
        (lambda: 3, 3, ""),
        (lambda: click.get_current_context().exit(4), 4, ""),
        (raising(InputError.one("x", "a", "b")), 2, "prog: X: SAW A; WANT B\n"),
        (raising(click.ClickException("no")), 2, "Error: no\n"),
        (raising(click.Abort()), 130, "\n"),
        (raising(KeyboardInterrupt()), 130, "\n"),
        (raising(BrokenPipeError()), 141, ""),
    ],
)
def test_every_end_of_a_command_has_its_exit_code(
    what: Callable[[], object], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert answer(what, capsys) == (code, said)


@pytest.mark.parametrize("error", [KeyError("key"), FactUnavailable("fact"), OSError(5, "disk")])
def test_what_nobody_expected_is_reported_with_its_place_and_the_versions(
    error: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = answer(raising(error), capsys)
    assert code == 70
    assert "in command\n    raise error\n" in said
    assert str(error) in said
    assert "This is a fault of prog, not of your change or input." in said
    assert said.splitlines()[-1].startswith("prog ")


def test_an_exit_that_a_command_chose_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        answer(raising(SystemExit(1)), capsys)
    assert ended.value.code == 1

# SPDX-License-Identifier: Apache-2.0
"""`kimi-k3` where an extra is not installed: what works without it, and what to install."""

import subprocess
import sys


def without(module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """One command where importing `module` fails as if it were not there."""
    code = (
        "import sys\n"
        f"sys.modules[{module!r}] = None\n"
        f"sys.argv = ['kimi-k3', *{arguments!r}]\n"
        "from kimi_k3.cli import main\n"
        "main()"
    )
    argv = [sys.executable, "-c", code]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def test_a_command_that_needs_a_missing_extra_names_it() -> None:
    done = without("torch", "generate", "--prompt-ids", "1")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "kimi-k3: torch: saw no such module; want what the extra `reference` brings; fix: "
        "install it, such as pip install 'path/to/clone[reference]'\n"
    )


def test_shapes_need_no_extra() -> None:
    assert without("torch", "config", "show", "--config", "tiny").returncode == 0


def test_a_module_that_no_extra_brings_is_a_fault() -> None:
    done = without("json", "config", "show", "--config", "tiny", "--format", "json")
    assert done.returncode == 70
    assert "This is a fault of kimi-k3" in done.stderr

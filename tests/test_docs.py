# SPDX-License-Identifier: Apache-2.0
"""Documents tell the truth: their commands run, and the files that they name exist.

`docs/adopt.md` is run as it stands, in a repository made for it. Each shell line is one command;
`#-> VERDICT exit CODE` behind it is what must come out.
"""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXPECTED = re.compile(r"#->(?: (?P<verdict>[a-z-]+))? exit (?P<code>\d+)\s*$")
PAGES = sorted(p for p in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


@dataclass(frozen=True)
class Command:
    text: str
    verdict: str
    code: int


def commands(page: str) -> list[Command]:
    """The commands of a page; a here-document belongs to the line that opens it."""
    found: list[Command] = []
    for block in BLOCK.findall((ROOT / page).read_text("utf-8")):
        lines = iter(block.splitlines())
        for line in lines:
            text = line
            if opened := re.search(r"<<'(\w+)'$", line):
                for more in lines:
                    text += "\n" + more
                    if more == opened[1]:
                        break
            expected = EXPECTED.search(line)
            verdict = (expected["verdict"] or "") if expected else ""
            code = int(expected["code"]) if expected else 0
            found.append(Command(text, verdict, code))
    return found


def run(command: str, where: Path) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_AUTHOR_NAME": "A U Thor",
        "GIT_AUTHOR_EMAIL": "author@example.com",
        "GIT_COMMITTER_NAME": "A U Thor",
        "GIT_COMMITTER_EMAIL": "author@example.com",
    }
    argv = ["bash", "-c", command]
    return subprocess.run(
        argv, cwd=where, env=environment, capture_output=True, text=True, check=False
    )


def engine_repository(where: Path) -> None:
    for path, text in {
        "engine_x/models/foo/attention.py": "BLOCK = 32\n",
        "engine_x/scheduler.py": "LIMIT = 1\n",
    }.items():
        (where / path).parent.mkdir(parents=True, exist_ok=True)
        (where / path).write_text(text)
    setup = "git init -q -b main . && git add -A && git commit -q -m 'An engine'"
    assert run(setup, where).returncode == 0


def test_every_command_of_the_adoption_guide_does_what_the_guide_says(tmp_path: Path) -> None:
    engine_repository(tmp_path)
    steps = commands("docs/adopt.md")
    assert {s.verdict for s in steps} >= {
        "fast-track",
        "needs-evidence",
        "ordinary-review",
        "refused",
    }
    for step in steps:
        done = run(step.text, tmp_path)
        said = f"$ {step.text}\n{done.stdout}{done.stderr}"
        assert done.returncode == step.code, said
        if step.verdict:
            assert step.verdict in done.stdout, said


def test_the_readme_uses_only_commands_that_are_run() -> None:
    set_up, use = (block.splitlines() for block in BLOCK.findall((ROOT / "README.md").read_text()))
    assert [line.split()[0] for line in set_up] == ["scripts/demo", "scripts/test"]
    ci = (ROOT / ".ci/run").read_text()
    assert '"$here/scripts/test"' in ci
    assert '"$here/scripts/demo"' in ci
    assert use[0] == "pip install path/to/the/clone"
    subcommands = {line.split()[1] for line in use[1:]}
    assert subcommands <= {step.text.split()[1] for step in commands("docs/adopt.md")}


def test_the_readme_quotes_the_demo_s_end_as_it_is_printed() -> None:
    (quoted,) = re.findall(r"^```text\n(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)
    (day,) = re.findall(r"as of (\S+)$", quoted, re.M)
    said = run(f"fasttrack demo --as-of {day}", ROOT).stdout
    assert said.partition("\nrefused")[2].startswith(quoted.removeprefix("refused"))


def test_the_readmes_use_section_runs_in_a_repository_with_other_names(tmp_path: Path) -> None:
    engine_repository(tmp_path)
    _, use = BLOCK.findall((ROOT / "README.md").read_text())
    init, check = use.splitlines()[1:]
    init = init.replace("path/to/your/decode_path/", "engine_x/models/foo/")
    init = init.replace("SOMEBODY_ELSE", "foo-backup").replace("YOU", "foo-owner")
    assert run(init, tmp_path).returncode == 0
    assert run("git add -A && git commit -q -m policy", tmp_path).returncode == 0
    assert run(
        "git switch -q -c topic && echo 'B = 1' >> engine_x/models/foo/attention.py", tmp_path
    )
    assert run("git commit -q -a -m topic", tmp_path).returncode == 0
    done = run(check, tmp_path)
    assert (done.returncode, done.stdout.split()[0]) == (0, "fast-track")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_files_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text("utf-8")
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)", text)
    missing = [link for link in links if not (page.parent / link).exists()]
    named = re.findall(
        r"`((?:docs|fasttrack|kimi_k3|manifests|scripts|tests|\.ci|\.github)/[\w./-]+)`", text
    )
    own = page.name not in {"adopt.md", "policy.md"}  # they speak of the reader's repository
    missing += [path for path in named if own and not (ROOT / path).exists()]
    assert missing == []

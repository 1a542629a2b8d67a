# SPDX-License-Identifier: Apache-2.0
import gc
import re
from pathlib import Path

import pytest

from fasttrack.change import git as git_module
from fasttrack.change.git import Git, GitFailure
from fasttrack.errors import InputError
from fasttrack.testing import Repo

from .conftest import RunGit, put_git_on_path


def test_an_older_git_is_bad_input_that_names_the_version(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_git_on_path(tmp_path, monkeypatch, 'echo "git version 2.37.9 (Apple Git-1)"')
    with pytest.raises(InputError, match=r"saw git version 2\.37\.9.*want git 2\.38 or newer"):
        Git(repo.path)


@pytest.mark.parametrize("said", ["2.38.0", "3.0.1", "2.50.1 (Apple Git-155)", "2.38.0.windows.1"])
def test_the_oldest_git_and_newer_ones_are_accepted(
    said: str, repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = f'[ "$1" = version ] && echo "git version {said}" || exec REAL "$@"'
    put_git_on_path(tmp_path, monkeypatch, script)
    Git(repo.path).close()


def test_a_missing_git_is_bad_input(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(InputError, match="no git on the search path"):
        Git(repo.path)


def test_a_directory_that_is_no_repository_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a git repository"):
        Git(tmp_path)


def test_a_directory_that_is_not_there_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no directory"):
        Git(tmp_path / "nowhere")


def test_a_repository_of_somebody_else_is_refused_unless_the_user_trusts_it(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = 'GIT_TEST_ASSUME_DIFFERENT_OWNER=1 exec REAL "$@"'
    put_git_on_path(tmp_path, monkeypatch, script)
    with pytest.raises(InputError, match=r"dubious ownership.*fix: git config .*safe\.directory"):
        Git(repo.path)
    (tmp_path / "home" / ".gitconfig").write_text("[safe]\n\tdirectory = *\n")
    Git(repo.path).close()


def test_trust_given_by_variables_is_honoured(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_git_on_path(tmp_path, monkeypatch, 'GIT_TEST_ASSUME_DIFFERENT_OWNER=1 exec REAL "$@"')
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "safe.directory")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "*")
    Git(repo.path).close()


def test_variables_that_a_hook_sets_do_not_lead_to_another_repository(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = repo.commit("main", {"a": "wanted"})
    other = Repo(tmp_path / "other")
    other.commit("main", {"a": "other"})
    monkeypatch.setenv("GIT_DIR", str(other.git_dir))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(other.git_dir / "objects"))
    git = Git(repo.path)
    assert git.resolve(["main"]) == (wanted,)
    assert git.run("cat-file", "-t", wanted).out == b"commit\n"
    git.close()


@pytest.mark.parametrize("revision", ["-c", "--all", "", "a\nb", "a\0b", "main\r"])
def test_a_revision_that_could_be_an_option_or_a_request_is_refused(
    revision: str, repo: Repo
) -> None:
    git = Git(repo.path)
    with pytest.raises(InputError, match="revision"):
        git.resolve([revision])
    git.close()


def test_a_name_of_both_a_tag_and_a_branch_is_refused(repo: Repo) -> None:
    old = repo.commit("main", {"a": "1"})
    repo.commit("main", {"a": "2"})
    repo.ref("refs/tags/main", old)
    git = Git(repo.path)
    with pytest.raises(InputError, match=r"main: .*several refs.*refs/heads/main"):
        git.resolve(["main"])
    git.close()


def test_revisions_are_resolved_together_and_unknown_ones_are_none(repo: Repo, git: RunGit) -> None:
    first = repo.commit("main", {"a": "1"})
    second = repo.commit("main", {"a": "2"})
    git("tag", "-a", "v1", "-m", "x", first, cwd=repo.path)
    ours = Git(repo.path)
    before = ours.process_count
    found = ours.resolve(["main~1", "gone", "v1", "main^{tree}", second[:12], "HEAD"])
    assert found == (first, None, first, None, second, second)
    assert ours.process_count == before + 1
    ours.close()


def test_output_beyond_the_limit_is_cut_off_and_an_error(repo: Repo) -> None:
    tree = repo.tree([("100644", b"%05d" % n, repo.write("blob", b"")) for n in range(2000)])
    git = Git(repo.path)
    with pytest.raises(GitFailure, match="more than 1,000 bytes"):
        git.run("ls-tree", tree, limit=1000)
    git.close()


def test_a_command_that_runs_for_ever_is_ended(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_git_on_path(tmp_path, monkeypatch, '[ "$1" = gc ] && exec sleep 600 || exec REAL "$@"')
    git = Git(repo.path)
    monkeypatch.setattr(git_module, "TIME_LIMIT_S", 0.05)
    with pytest.raises(GitFailure, match="git gc ended by signal 9"):
        git.run("gc")
    git.close()


def test_processes_and_files_end_with_the_object_that_owns_them(repo: Repo) -> None:
    git = Git(repo.path)
    process = git.start("cat-file", "--batch-command", "--buffer")
    folder = Path(git.run("rev-parse", "--absolute-git-dir").out.decode().strip())
    assert folder.is_dir()
    del git
    gc.collect()
    assert process.returncode is not None
    assert not folder.exists()


def test_closing_twice_is_harmless(repo: Repo) -> None:
    git = Git(repo.path)
    git.close()
    git.close()


def test_no_configuration_of_the_user_reaches_the_private_repository(
    repo: Repo, tmp_path: Path
) -> None:
    (tmp_path / "home" / ".gitconfig").write_text("[merge]\n\trenames = false\n[x]\n\ty = 1\n")
    with (repo.git_dir / "config").open("a") as config:
        config.write("[x]\n\tz = 1\n")
    git = Git(repo.path)
    listed = git.run("config", "--list").out.decode()
    assert "merge.renames=true" in listed
    assert "x.y" not in listed
    assert "x.z" not in listed
    git.close()


@pytest.mark.parametrize("name", ['quote " and \\ back', "co:lon", "#hash", "ümläut", "tab\there"])
def test_a_repository_at_an_unusual_path_is_read(name: str, tmp_path: Path) -> None:
    repo = Repo(tmp_path / name)
    oid = repo.commit("main", {"a": "1"})
    git = Git(repo.path)
    assert git.run("cat-file", "-t", oid).out == b"commit\n"
    git.close()


def test_only_git_the_collector_the_sandbox_and_the_audit_s_tools_start_processes() -> None:
    package = Path(git_module.__file__).parent.parent
    starters = re.compile(
        r"^\s*(import|from) subprocess|(?<![\"'`.\w])os\.(system|exec\w*|\w*spawn\w*|popen)\(",
        re.MULTILINE,
    )
    found = {
        file.relative_to(package).as_posix()
        for file in package.rglob("*.py")
        if starters.search(file.read_text(encoding="utf-8"))
    }
    # Wall and box become the processes that the children are started as.
    walls = {"evidence/wall.py", "executed/box.py"}
    starting = {"audit/read/tools.py", "change/git.py", "evidence/child.py", "executed/sandbox.py"}
    assert found == starting | walls


def test_a_user_without_room_for_large_pipes_gets_the_same_answers(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> int:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("fcntl.fcntl", refused)
    oid = repo.commit("main", {"a": "1"})
    git = Git(repo.path)
    assert git.resolve(["main"]) == (oid,)
    git.close()

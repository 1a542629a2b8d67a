# SPDX-License-Identifier: Apache-2.0
"""`docs/evidence.md`, command by command; and what sign, merge, gc and collect say besides."""

import fcntl
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fasttrack.cli import main
from fasttrack.cli.evidence import COMMANDS
from fasttrack.cli.evidence.collect import _summary
from fasttrack.evidence.collect import Collected
from fasttrack.evidence.digest import InputFile
from fasttrack.evidence.dsse import read_envelope, sign
from fasttrack.evidence.garbage import copies, garbage, wanted_by
from fasttrack.evidence.inputs import UnitInputs
from fasttrack.evidence.keyfile import new_key
from fasttrack.evidence.packed import unpack
from fasttrack.evidence.store import Stored, read_folder, write
from fasttrack.evidence.store_files import PLAIN_SUFFIX, SUFFIX
from fasttrack.manifest.model import AUDIT_WAIVER, Waiver
from fasttrack.manifest.variants import load_variant_table
from fasttrack.policy.load import load_policy
from fasttrack.vocabulary import Kind
from tests.engine import POLICY, files
from tests.evidence.keys import DAY, key, signer, trust
from tests.evidence.strategies import good
from tests.test_docs import ROOT, commands, run

PAGE = "docs/evidence.md"
STORE = ".github/fasttrack/evidence"
KEY = "../signer/lab.key"


@dataclass(frozen=True)
class Walk:
    """The page's commands, and what they printed.

    Attributes:
        repo: where they ran.
        said: command to its output; the last time that it ran.
    """

    repo: Path
    said: Mapping[str, str]

    def ends_of(self, start: str) -> list[str]:
        """Last lines of the output of every command that begins so."""
        return [t.splitlines()[-1] for c, t in self.said.items() if c.startswith(start)]


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Walk:
    repo = tmp_path_factory.mktemp("walk") / "repo"
    repo.mkdir()
    said: dict[str, str] = {}
    for number, step in enumerate(commands(PAGE)):
        done = run(step.text, repo)
        assert done.returncode == step.code, f"$ {step.text}\n{done.stdout}{done.stderr}"
        said[f"{step.text} # {number}"] = done.stdout
    return Walk(repo, said)


@pytest.fixture
def repo(walk: Walk, tmp_path: Path) -> Path:
    """A copy of the repository that the page leaves, with the keys beside it."""
    shutil.copytree(walk.repo.parent, tmp_path / "copy")
    return tmp_path / "copy/repo"


def test_the_page_leads_from_an_empty_folder_to_evidence_that_counts(walk: Walk) -> None:
    assert walk.ends_of("fasttrack evidence verify") == [
        "19 of 19 statements accepted",
        "38 of 38 statements accepted",
    ]
    assert walk.ends_of("fasttrack evidence list") == ["19 of 19 statements accepted"]
    assert walk.ends_of("fasttrack evidence plan #") == ["Nothing is missing."]
    (explained,) = (said for command, said in walk.said.items() if "scope explain" in command)
    assert "here-tp1: inside, claims kernel-tested, effective kernel-tested" in explained
    first, second = walk.ends_of("fasttrack evidence collect")
    assert first == second
    assert first.startswith("next: fasttrack evidence sign --bundle out --plan plan.json --key")
    useless, deleted = (
        walk.ends_of("fasttrack evidence gc #")[1:],
        walk.ends_of("fasttrack evidence gc --delete"),
    )
    assert useless == ["next: fasttrack evidence gc --delete"]
    assert deleted == [
        "    the tests of gate-files are others now",
        "every file has a statement that counts, and none is a copy",
    ]


def test_every_command_of_evidence_is_on_the_page() -> None:
    text = (ROOT / PAGE).read_text("utf-8")
    assert [name for name in COMMANDS if f"evidence {name}" not in text] == []


def test_the_page_quotes_the_digest_and_a_sample_as_they_are() -> None:
    text = (ROOT / PAGE).read_text("utf-8")
    (shell,) = re.findall(r"^```bash\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert shell in (ROOT / "tests/evidence/files_v1.sh").read_text("utf-8")
    _, trusted, sample = re.findall(r"^```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(load_policy(files()[POLICY] + trusted, "page").trust.identities) == 1
    map_file = ROOT / "tests/evidence/importers/samples/junit-map.yaml"
    assert map_file.read_text("utf-8").startswith(sample)


def test_the_page_s_waiver_and_variant_table_are_ones() -> None:
    text = (ROOT / PAGE).read_text("utf-8")
    (table,) = re.findall(r"^```json\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    waived = re.findall(r"^```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[0]
    (row,) = load_variant_table(table, "table").variants
    assert row.audit is not None
    (waiver,) = (Waiver.model_validate(one) for one in yaml.safe_load(waived)["waivers"])
    assert (waiver.rule, len(waiver.fingerprint)) == (AUDIT_WAIVER, 64)


def fasttrack(*arguments: object) -> int:
    return main.run(["evidence", *map(str, arguments)])


def bundle_options(repo: Path) -> tuple[object, ...]:
    return "--repo", repo, "--bundle", repo / "out", "--plan", repo / "plan.json"


def tip_of(repo: Path, ref: str = "main") -> str:
    return run(f"git rev-parse {ref}", repo).stdout[:12]


def test_a_key_of_another_commit_s_policy_signs_when_that_is_named(
    repo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = repo.parent / "store"
    key_ = ("--key", repo / "../signer/lab-2.key", "--key-id", "lab-2", "--out", out)
    before = ("--policy-from", "HEAD~1")
    assert fasttrack("sign", *bundle_options(repo), *key_, *before) == 2
    said = capsys.readouterr().err
    assert f"saw 'lab-2', which the policy of HEAD~1 ({tip_of(repo, 'HEAD~1')}) does not" in said
    assert fasttrack("sign", *bundle_options(repo), *key_, "--policy-from", "HEAD") == 0
    assert len(read_folder(out).statements) == 19


def test_a_key_that_the_policy_does_not_have_so_signs_nothing(
    repo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = repo.parent / "other.key"
    new_key("other", other, None)
    for key_id, saw in (("other", "does not have"), ("lab", "has with another public half")):
        out = repo.parent / f"store-{key_id}"
        options = (*bundle_options(repo), "--key", other, "--key-id", key_id, "--out", out)
        assert fasttrack("sign", *options) == 2
        said = capsys.readouterr().err
        tip = f"the policy of the target branch's tip ({tip_of(repo)})"
        assert f"saw '{key_id}', which {tip} {saw}; want one of lab, lab-2" in said
        assert "`--policy-from REF`" in said
        assert not out.exists()


@pytest.mark.parametrize(
    "options",
    [(), ("--bundle",), ("--plan",), ("--bundle", "--plan", "--resign"), ("--plan", "--resign")],
)
def test_sign_takes_a_bundle_with_its_plan_or_an_old_key(
    repo: Path, options: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    values = {"--bundle": repo / "out", "--plan": repo / "plan.json", "--resign": "lab"}
    given_ = [word for name in options for word in (name, values[name])]
    code = fasttrack("sign", "--repo", repo, *given_, "--key", repo / KEY, "--key-id", "lab")
    said = capsys.readouterr().err
    assert (code, "want --bundle with --plan, or --resign" in said) == (2, True)


def test_signing_executes_nothing_of_the_tree(repo: Path) -> None:
    trap = "from pathlib import Path\nPath(__file__).with_suffix('.ran').touch()\n"
    for name in (
        "lamp/__init__.py",
        "conftest.py",
        "yaml.py",
        "securesystemslib.py",
        "usercustomize.py",
    ):
        (repo / name).write_text(trap)
    store = repo.parent / "store"
    options = f"--bundle out --plan plan.json --key {KEY} --key-id lab --out {store}"
    done = run(f"fasttrack evidence sign {options}", repo)
    assert (done.returncode, [*repo.rglob("*.ran")]) == (0, []), done.stderr
    assert len(read_folder(store).statements) == 19


def test_a_bundle_with_anything_else_in_it_is_not_signed(
    repo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (file,) = (repo / "out").iterdir()
    file.write_bytes(file.read_bytes() + b"{}\n")
    options = (*bundle_options(repo), "--key", repo / KEY, "--key-id", "lab")
    assert fasttrack("sign", *options) == 2
    assert f"{file.name}:20: saw " in capsys.readouterr().err


def test_merge_says_what_it_leaves_out(
    repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / ("0" * 64 + ".dsse.jsonl")).write_bytes(b"{}\n")
    write(broken, [sign(good(Kind.REFUSAL), signer("lab"))])
    before = {*(repo / STORE).iterdir()}
    assert fasttrack("merge", broken, "--repo", repo) == 1
    (new,) = {*(repo / STORE).iterdir()} - before
    said = capsys.readouterr()
    assert said.out == f"{new.name}\n"
    assert said.err.startswith("left out: 000000")
    assert fasttrack("merge", repo / STORE, "--repo", repo) == 0
    assert capsys.readouterr().out == "nothing that is not there already\n"


def test_gc_leaves_what_can_not_be_read_and_the_last_file_of_a_cell(
    repo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = repo / STORE
    (store / ("0" * 64 + ".dsse.jsonl")).write_bytes(b"{}\n")
    (foreign,) = write(store, [sign(good(Kind.REFUSAL), signer("nobody"))])
    before = {*store.iterdir()}
    assert fasttrack("gc", "--repo", repo) == 0
    assert {*store.iterdir()} == before
    capsys.readouterr()
    assert fasttrack("gc", "--repo", repo, "--delete") == 0
    assert {*store.iterdir()} == before - {foreign}
    removed, why, left = capsys.readouterr().out.splitlines()
    assert removed == f"removed: {foreign.name}, 1 statements"
    assert why == "    key nobody is not one of the policy's"
    assert left == f"left: {'0' * 64}.dsse.jsonl can not be read"


def test_a_plain_store_is_packed_and_its_plain_files_may_go(
    repo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in [*(repo / STORE).iterdir()]:
        text, _ = unpack(path.read_bytes())
        (repo / STORE / f"{sha256(text).hexdigest()}.dsse.jsonl").write_bytes(text)
        path.unlink()
    plain, before = {*(repo / STORE).iterdir()}, read_folder(repo / STORE).statements
    assert fasttrack("merge", "--repo", repo) == 2
    assert "merge: saw nothing to add; want DIR or FILE, or --pack" in capsys.readouterr().err
    assert fasttrack("gc", "--repo", repo) == 0
    assert "of no use" not in capsys.readouterr().out
    assert fasttrack("merge", "--pack", "--repo", repo) == 0
    (packed,) = {*(repo / STORE).iterdir()} - plain
    assert capsys.readouterr().out == f"{packed.name}\n"
    assert fasttrack("gc", "--repo", repo, "--delete") == 0
    assert [*(repo / STORE).iterdir()] == [packed]
    said = capsys.readouterr().out.splitlines()
    assert sorted(said[::2]) == sorted(f"removed: {path.name}, 19 statements" for path in plain)
    assert {*said[1::2]} == {"    each of them is in another file too"}
    after = read_folder(repo / STORE).statements
    assert {one.signed for one in after} == {one.signed for one in before}


def test_gc_removes_what_a_killed_writer_left(
    repo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    left, held = repo / STORE / ".left.partial", repo / STORE / ".held.partial"
    left.write_bytes(b"half")
    with held.open("wb") as writing:
        fcntl.flock(writing, fcntl.LOCK_EX)
        assert fasttrack("gc", "--repo", repo) == 0
        assert capsys.readouterr().out.splitlines() == [
            "of no use: .left.partial, half written by a writer that is gone",
            "next: fasttrack evidence gc --delete",
        ]
        assert fasttrack("gc", "--repo", repo, "--delete") == 0
        assert (left.exists(), held.exists()) == (False, True)


def one(rows: int, key_id: str = "lab", file: str = "f", **changes: Any) -> Stored:
    said = good(Kind.REFUSAL, values={"region": "r", "bound": "rows_max", "rows": rows}, **changes)
    return Stored(f"{file}:{rows}", read_envelope(sign(said, signer(key_id)), "f"), said)


def inputs_of(unit: str) -> UnitInputs:
    """Inputs with the digests of `good`."""
    told = UnitInputs(unit, (InputFile("a", "100644", "0" * 64, ""),), (), ())
    told.__dict__.update(digest="a" * 64, tests_digest="b" * 64)
    return told


LINES_OF = {(rows, file): one(rows, file=file) for rows in range(1, 5) for file in "abcd"}
CELLS = tuple(one(rows).statement.cell for rows in (1, 2))
WANTED = wanted_by([(CELLS, inputs_of)])


@pytest.mark.parametrize(
    ("stored", "why"),
    [
        (one(1), ""),
        (one(2, finished=good(Kind.REFUSAL).predicate.run.finished.replace(year=2027)), ""),
        (one(3), "no manifest has such a refusal cell any more"),
        (one(1, digest="c" * 64), "the files of kda are others now"),
        (one(1, tests="c" * 64), "the tests of kda are others now"),
        (one(1, "nobody"), "key nobody is not one of the policy's"),
        (
            one(1, finished=good(Kind.REFUSAL).predicate.run.finished.replace(month=6)),
            "the run ended 162 days ago, and refusal evidence counts for 90",
        ),
    ],
)
def test_a_statement_is_of_use_while_it_answers_a_cell_or_may_do_so_later(
    stored: Stored, why: str
) -> None:
    keys = trust(key("lab", valid_until=date(2999, 1, 1)), thresholds={Kind.REFUSAL: 2})
    found = garbage([stored], [], WANTED, keys, DAY)
    assert [g.reasons for g in found] == ([(why,)] if why else [])
    assert garbage([stored], ["f"], WANTED, keys, DAY) == ()


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=8))
def test_a_file_with_one_statement_that_counts_stays(content: list[tuple[str, bool]]) -> None:
    stored = [one(1 if counts else 3, file=file) for file, counts in content]
    found = {g.name for g in garbage(stored, [], WANTED, trust(), DAY)}
    assert found == {file for file, _ in content} - {file for file, counts in content if counts}


def test_a_file_that_repeats_another_is_a_copy_and_the_plain_one_goes() -> None:
    gz, plain = f"a{SUFFIX}", f"b{PLAIN_SUFFIX}"
    held = [one(1, file=plain), one(1, file=gz)]
    assert [(c.name, c.statements) for c in copies(held, [])] == [(plain, 1)]
    assert [c.name for c in copies(held, [plain])] == [gz]
    assert copies(held, [gz, plain]) == ()
    assert copies([one(1, file=plain), one(1, "cloud", file=gz)], []) == ()
    smaller = [one(1, file="a"), one(2, file="a"), one(1, file="b")]
    assert [c.name for c in copies(smaller, [])] == ["b"]


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(1, 4)), max_size=12))
def test_without_the_copies_every_statement_is_still_there(content: list[tuple[str, int]]) -> None:
    stored = [LINES_OF[rows, file] for file, rows in content]
    gone = {c.name for c in copies(stored, [])}
    left = [s for s in stored if s.file not in gone]
    assert {s.signed for s in left} == {s.signed for s in stored}
    assert copies(left, []) == ()


def summary(**changes: Any) -> Iterator[str]:
    fields: dict[str, Any] = {"run": "r", "passed": 0, "failed": 0, "resumed": 0, "elsewhere": {}}
    fields |= {"unmeasured": 0, "walled": True}
    fields |= changes
    return _summary(Collected(**fields), Path("a plan.json"), Path("out"))


def test_a_summary_names_the_next_command() -> None:
    sign_it = "next: fasttrack evidence sign --bundle out --plan 'a plan.json' --key FILE"
    assert [*summary(passed=2)][1:] == [f"{sign_it} --key-id ID"]
    again = "next: fasttrack evidence plan --out PLAN"
    assert [*summary(failed=2)][2:] == [again]
    assert [*summary(failed=1, passed=1)][2:] == [again, f"{sign_it} --key-id ID"]
    assert [*summary(elsewhere={"needs h200": 3})][1:] == ["3 cells left: needs h200"]

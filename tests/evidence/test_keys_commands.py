# SPDX-License-Identifier: Apache-2.0
"""`fasttrack keys`: what is printed goes into a policy, and what is wrong is told."""

from datetime import date, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasttrack.cli import main as cli
from fasttrack.evidence.keyfile import read_public
from fasttrack.policy.load import load_policy
from fasttrack.policy.trust import Key
from fasttrack.report.keys import policy_lines
from fasttrack.vocabulary import Kind
from tests.engine import POLICY, files
from tests.evidence.keys import DAY, key
from tests.evidence.test_keyfile import AS_OF, SEED, SEED_PUBLIC, put


def test_new_prints_lines_that_a_policy_takes_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, public_out = tmp_path / "lab.pem", tmp_path / "lab.pub"
    arguments = ["keys", "new", "--id=123", "--out", str(out), "--public-out", str(public_out)]
    arguments += ["--hardware=h200", AS_OF]
    assert cli.run(arguments) == 0
    said = capsys.readouterr().out
    (made,) = load_policy(files()[POLICY] + said, "policy.yaml").trust.keys
    assert (made.id, made.public, made.pool) == ("123", read_public(public_out), "123")
    assert (made.roles, made.kinds, made.hardware) == (("runner",), tuple(Kind), ("h200",))
    assert (made.valid_from, made.valid_until) == (DAY, DAY + timedelta(365))
    assert out.read_text().splitlines()[1] not in said
    assert out.stat().st_mode & 0o777 == 0o600
    before = out.read_bytes()
    assert cli.run(arguments) == 2
    assert out.read_bytes() == before


def test_new_prints_what_it_was_told_of_the_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = ["--pool=lab", "--hardware=no", "--hardware=1e5", "--kinds=stress", "--kinds=refusal"]
    told += ["--role=reviewer", "--role=release", "--as-of=9999-12-31"]
    assert cli.run(["keys", "new", "--id=x", f"--out={tmp_path / 'x'}", *told]) == 0
    (made,) = load_policy(files()[POLICY] + capsys.readouterr().out, "p").trust.keys
    assert (made.pool, made.hardware) == ("lab", ("no", "1e5"))
    assert made.kinds == (Kind.STRESS, Kind.REFUSAL)
    assert made.roles == ("reviewer", "release")
    assert made.valid_from == made.valid_until == date.max


@pytest.mark.parametrize(
    "wrong", ["--id=A b", "--hardware=an H200", "--pool=a/b", "--kinds=speed", "--role=author"]
)
def test_new_makes_no_key_that_no_policy_could_take(tmp_path: Path, wrong: str) -> None:
    arguments = ["--id=x", "--hardware=h200", f"--out={tmp_path / 'x'}"]
    assert cli.run(["keys", "new", *arguments, wrong]) == 2
    assert [*tmp_path.iterdir()] == []


def test_new_needs_to_know_the_hardware(tmp_path: Path) -> None:
    assert cli.run(["keys", "new", "--id=x", f"--out={tmp_path / 'x'}"]) == 2
    assert [*tmp_path.iterdir()] == []


names = st.from_regex(r"[a-z0-9][a-z0-9_.-]{0,9}", fullmatch=True)


@given(
    st.builds(
        key,
        names,
        public=st.from_regex(r"[0-9a-f]{64}", fullmatch=True) | st.just("1e" + "0" * 62),
        roles=st.lists(st.sampled_from(["runner", "reviewer", "release"]), min_size=1).map(tuple),
        kinds=st.lists(st.sampled_from(Kind), min_size=1).map(tuple),
        pool=names,
        hardware=st.lists(names, min_size=1, max_size=3).map(tuple),
        valid_from=st.dates(max_value=DAY),
        valid_until=st.dates(min_value=DAY),
    )
)
def test_whatever_a_key_may_the_printed_lines_say_so(made: Key) -> None:
    assert load_policy(files()[POLICY] + policy_lines(made), "p").trust.keys == (made,)


def test_show_prints_the_public_half(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["keys", "show", str(put(tmp_path / "seed", SEED))]) == 0
    assert capsys.readouterr().out == SEED_PUBLIC + "\n"
    assert cli.run(["keys", "show", str(put(tmp_path / "seed", SEED, 0o644))]) == 2
    said = capsys.readouterr()
    assert "chmod 600" in said.err
    assert SEED not in said.err + said.out


def test_check_compares_the_repository_s_policy_and_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def check(*more: str) -> int:
        return cli.run(["keys", "check", "--repo", str(tmp_path), *(more or (AS_OF,))])

    folder = tmp_path / "manifests" / "keys"
    for path, text in files().items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    assert check() == 0
    folder.mkdir(parents=True)
    new = ["keys", "new", "--id=lab", "--hardware=h200", "--out", str(tmp_path / "lab.pem")]
    capsys.readouterr()
    assert cli.run([*new, "--public-out", str(folder / "lab.pub"), AS_OF]) == 0
    lines = capsys.readouterr().out
    assert check() == 1
    assert capsys.readouterr().out == "WRONG lab: the policy has no such key\n"
    (tmp_path / POLICY).write_text(files()[POLICY] + lines)
    assert check() == 0
    assert capsys.readouterr().out == "ok    lab\n"
    assert check("--as-of=2026-11-28") == 1
    (folder / "lab.pub").unlink()
    assert check() == 1
    assert "there is no file lab.pub" in capsys.readouterr().out

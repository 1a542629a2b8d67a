# SPDX-License-Identifier: Apache-2.0
"""`kimi-k3 generate`: the same ids however the model is split, and clear answers to the rest."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner, Result

from fasttrack.errors import InputError
from fasttrack.manifest.admission import Question
from kimi_k3.assembly import shard
from kimi_k3.checkpoint import save_checkpoint
from kimi_k3.cli import cli
from kimi_k3.config import tiny
from kimi_k3.decode.scope import packaged_manifest, refusals
from kimi_k3.generate import Request, generate, pick
from kimi_k3.ranks import RankError
from kimi_k3.reference.context import Context
from kimi_k3.reference.model import Model
from kimi_k3.rounding import Rounding, exact, stock
from kimi_k3.weights import ModelWeights
from tests.kimi_k3.reference.builders import Server, widened

PROMPT = (1, 2, 3)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["generate", *arguments])


def answer(*arguments: str) -> dict[str, Any]:
    done = run(*arguments, "--format", "json")
    assert done.exit_code == 0, done.output
    parsed: dict[str, Any] = json.loads(done.stdout)
    return parsed


def problems(*arguments: str) -> list[str]:
    """What `main` prints, one line a problem."""
    done = run(*arguments)
    assert isinstance(done.exception, InputError), done.output
    return [str(problem) for problem in done.exception.problems]


def greedy_without_cache(
    weights: ModelWeights, count: int, policy: Rounding
) -> tuple[list[int], torch.Tensor]:
    """Each token from a fresh prefill of everything before it, and the logits it came from."""
    model = Model(Context(tiny(), policy), widened(weights, policy.compute))
    tokens, rows = list(PROMPT), []
    for _ in range(count):
        rows.append(Server(model, 1, draft=0).prefill(0, tokens).logits[0])
        tokens.append(int(rows[-1].argmax()))
    return tokens[len(PROMPT) :], torch.stack(rows)


def test_the_command_of_the_issue_prints_eight_ids_and_what_computed_them() -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "kimi_k3", "generate", "--config", "tiny"),
            *("--backend", "auto", "--prompt-ids", "1,2,3", "--max-tokens", "8"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        ",".join(map(str, answer("--prompt-ids", "1,2,3")["token_ids"])),
        "providers: reference; tp 1, dcp 1; weights: random, seed 0",
    ]


def test_the_ids_are_the_greedy_ones_of_the_reference(tiny_weights: ModelWeights) -> None:
    got = answer("--config", "tiny", "--prompt-ids", "1,2,3", "--max-tokens", "4")
    assert got["token_ids"] == greedy_without_cache(tiny_weights, 4, stock())[0]


@pytest.mark.parametrize(("tp", "dcp"), [(1, 1), (2, 1), (4, 4)])
def test_in_float64_neither_ids_nor_logits_depend_on_the_split(
    tp: int, dcp: int, tiny_weights: ModelWeights, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Logits too: a wrong position may leave the most likely token what it was."""
    seen: list[torch.Tensor] = []

    def watched(logits: torch.Tensor, request: Request, step: int) -> int:
        seen.append(logits)
        return pick(logits, request, step)

    monkeypatch.setattr("kimi_k3.generate.pick", watched)
    policy = exact(torch.float64)
    shares = [shard(tiny_weights, tiny(), tp, rank) for rank in range(tp)]
    request = Request(PROMPT, 4)
    got = generate(tiny(), shares.__getitem__, request, tp=tp, dcp=dcp, rounding=policy)
    ids, logits = greedy_without_cache(tiny_weights, 4, policy)
    assert list(got) == ids
    assert len(seen) == 4 * tp
    for index, row in enumerate(seen):
        assert torch.allclose(row, logits[index // tp], rtol=1e-9, atol=1e-9)


def test_sixteen_ranks_that_share_the_cache_agree() -> None:
    got = answer(
        *("--config", "tiny16", "--tp", "16", "--dcp", "16"),
        *("--prompt-ids", "1,2,3", "--max-tokens", "2"),
    )
    assert (got["tp"], got["dcp"], len(got["token_ids"])) == (16, 16, 2)


def test_json_says_what_text_says() -> None:
    got = answer("--prompt-ids", "1, 2,3", "--max-tokens", "2", "--tp", "2")
    text = run("--prompt-ids", "1,2,3", "--max-tokens", "2", "--tp", "2").stdout.splitlines()
    assert text[1] == "providers: reference; tp 2, dcp 1; weights: random, seed 0"
    assert got == {
        "version": 1,
        "backend": "auto",
        "providers": ["reference"],
        "tp": 2,
        "dcp": 1,
        "weights": "random",
        "prompt_ids": [1, 2, 3],
        "token_ids": [int(token) for token in text[0].split(",")],
    }


def test_a_checkpoint_brings_its_configuration_and_its_weights(
    tmp_path: Path, tiny_weights: ModelWeights
) -> None:
    save_checkpoint(tiny_weights, tmp_path, tiny(), shards=2)
    arguments = ("--prompt-ids", "1,2,3", "--max-tokens", "3", "--seed", "9")
    got = answer("--weights", str(tmp_path), *arguments)
    assert got["token_ids"] == greedy_without_cache(tiny_weights, 3, stock())[0]
    assert got["weights"] == str(tmp_path)
    assert answer(*arguments)["token_ids"] != got["token_ids"]
    wrong = problems("--weights", str(tmp_path), "--config", "mini", "--tp", "2", *arguments)
    assert any("want shape [512, 192]" in line for line in wrong)
    (tmp_path / "config.json").unlink()
    (alone,) = problems("--weights", str(tmp_path), *arguments)
    assert "no config.json beside it; want one, or --config" in alone


def test_the_lowest_id_wins_among_equals() -> None:
    logits = torch.tensor([-1.0, 2.0, 2.0, -3.0, 2.0])
    assert pick(logits, Request((0,), 1), 0) == 1


def test_sampling_follows_the_softmax() -> None:
    """4,000 draws: counts within four standard deviations of the binomial law, for two
    temperatures; a softmax of the wrong temperature is tens of them away."""
    logits = torch.tensor([0.5, -1.0, 2.0, 1.25])
    for temperature in (0.5, 2.0):
        request = Request((0,), 1, temperature, seed=3)
        counts = [0] * 4
        for step in range(4000):
            counts[pick(logits, request, step)] += 1
        weights = [2.718281828459045 ** (float(x) / temperature) for x in logits]
        for count, weight in zip(counts, weights, strict=True):
            p = weight / sum(weights)
            assert abs(count - 4000 * p) < 4 * (4000 * p * (1 - p)) ** 0.5


@pytest.mark.parametrize("temperature", [5e-324, 1e-320, 1e-300])
def test_a_temperature_near_zero_picks_the_most_likely_token(temperature: float) -> None:
    """Logits divided by a subnormal number are infinite, and infinities have no softmax."""
    logits = torch.tensor([1.0, 5.0, -3.0, 4.999])
    assert pick(logits, Request((0,), 1, temperature), 0) == 1


def test_the_seed_and_the_step_decide_what_is_drawn() -> None:
    logits = torch.zeros(1000)

    def drawn(seed: int) -> list[int]:
        return [pick(logits, Request((0,), 1, 1.0, seed), step) for step in range(8)]

    assert drawn(1) == drawn(1)
    assert len({*drawn(1), *drawn(2)}) > 12


def test_sampled_tokens_are_the_same_on_every_rank_and_at_every_call() -> None:
    arguments = ("--prompt-ids", "1,2,3", "--max-tokens", "3", "--temperature", "3", "--tp", "2")
    assert answer(*arguments) == answer(*arguments)
    assert answer(*arguments)["token_ids"] != answer(*arguments[:4], "--tp", "2")["token_ids"]


def test_the_specialised_backend_is_refused_with_every_reason_of_the_gate() -> None:
    done = run("--backend", "latency_specialized", "--prompt-ids", "1,2,3", "--max-tokens", "8")
    assert (done.exit_code, done.stdout) == (1, "")
    first, *rest = done.stderr.splitlines()
    assert first == "kimi-k3: latency_specialized is refused; --backend auto runs here"
    reasons = refusals(packaged_manifest(), Question("cpu", 1, 1, 1, 0, 10))
    assert len(reasons) > 4
    assert rest == [
        *(f"  - {reason}" for reason in reasons),
        "  - this version has no decode kernels; every provider is the reference",
    ]


def test_a_refusal_needs_no_torch() -> None:
    code = (
        "import atexit, sys\n"
        "atexit.register(lambda: print('torch' in sys.modules))\n"
        "sys.argv = 'kimi-k3 generate --backend latency_specialized --prompt-ids 1'.split()\n"
        "from kimi_k3.cli import main\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "False\n")


VOCABULARY = "want ids from 0 to 511, the model's vocabulary"
REFUSED: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "an id outside the vocabulary": (
        ["--prompt-ids", "511,512,0,600"],
        [f"--prompt-ids: saw 512, 600; {VOCABULARY}"],
    ),
    "many ids outside the vocabulary": (
        ["--prompt-ids", "900,901,902,903,904,905"],
        [f"--prompt-ids: saw 900, 901, 902, 903, 904, ...; {VOCABULARY}"],
    ),
    "no id": (["--prompt-ids", ""], ["--prompt-ids: saw ''; want token ids, such as 1,2,3"]),
    "a negative id": (["--prompt-ids", "1,-3"], ["--prompt-ids: saw '-3'; want token ids"]),
    "a word": (["--prompt-ids", "1,two"], ["--prompt-ids: saw 'two'; want token ids"]),
    "a number of no end": (["--prompt-ids", "9" * 5000], ["--prompt-ids: saw '999"]),
    "digits of another script": (["--prompt-ids", "\u0661"], ["want token ids, such as 1,2,3"]),
    "one position too many": (
        ["--prompt-ids", "1,2,3", "--max-tokens", "4095"],
        [
            "--max-tokens: saw 3 prompt tokens and 4095 more; want at most 4096 positions; "
            "fix: --max-tokens 4094"
        ],
    ),
    "a prompt that is too long": (
        ["--prompt-ids", ",".join(["1"] * 4097)],
        ["want at most 4096 positions; fix: a shorter prompt"],
    ),
    "everything at once": (
        ["--prompt-ids", "512", "--max-tokens", "4097", "--temperature", "-1"],
        ["--prompt-ids: saw 512", "--max-tokens: saw 1 p", "--temperature: saw -1.0; want a numb"],
    ),
    "a temperature that is no number": (
        ["--prompt-ids", "1", "--temperature", "nan"],
        ["--temperature: saw nan; want a number from 0 to 100"],
    ),
    "ranks that can not divide the model": (
        ["--prompt-ids", "1", "--config", "tiny", "--tp", "8"],
        [
            "--tp: saw 8; want a divisor of kda_num_heads 4",
            "--tp: saw 8; want a divisor of mla_num_heads 4",
            "--tp: saw 8; want a divisor of 4, the scale groups of moe_intermediate_size",
        ],
    ),
    "context parallelism that is neither 1 nor tp": (
        ["--prompt-ids", "1", "--tp", "4", "--dcp", "2"],
        ["--dcp: saw 2; want 1 or the value of --tp, 4"],
    ),
    "the full model": (
        ["--prompt-ids", "1", "--config", "full", "--tp", "8"],
        ["GB of weights, state and cache; want at most 17.2 GB, because the only provider is"],
    ),
    "a configuration without a name": (
        ["--prompt-ids", "1", "--config", ""],
        ["--config: saw ''; want full, tiny, tiny16, mini, or a file"],
    ),
    "another model": (["--prompt-ids", "1", "--config", "large"], ["--config: saw 'large'; want"]),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_can_not_be_generated_is_refused_with_every_reason(case: str) -> None:
    arguments, wanted = REFUSED[case]
    lines = problems(*arguments)
    assert len(lines) == len(wanted)
    for line, words in zip(lines, wanted, strict=True):
        assert words in line
        assert len(line) < 250


def test_the_longest_request_that_fits_is_not_refused() -> None:
    Request(PROMPT, 4094).check(tiny())
    Request((511,), 4096).check(tiny())


def test_problems_end_with_exit_code_2_and_one_line_each() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kimi_k3", "generate", "--prompt-ids", "1,x"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "kimi-k3: --prompt-ids: saw 'x'; want token ids, such as 1,2,3\n"


def test_an_unknown_backend_is_a_usage_error_that_names_the_known_ones() -> None:
    done = run("--backend", "fast", "--prompt-ids", "1")
    assert done.exit_code == 2
    assert "'fast' is not one of 'auto', 'latency_specialized'" in done.stderr


def test_weights_that_compute_no_numbers_are_refused_on_any_number_of_ranks(
    tiny_weights: ModelWeights,
) -> None:
    norm = tiny_weights.norm.clone()
    norm[5] = torch.nan
    broken = replace(tiny_weights, norm=norm)
    for tp in (1, 2):
        with pytest.raises(InputError, match="logits that are no finite numbers at token 0"):
            generate(tiny(), lambda r, t=tp: shard(broken, tiny(), t, r), Request((1,), 2), tp=tp)  # type: ignore[misc]


def test_shares_of_different_models_do_not_pass_for_one(tiny_weights: ModelWeights) -> None:
    def share(rank: int) -> ModelWeights:
        own = shard(tiny_weights, tiny(), 2, rank)
        return replace(own, lm_head=own.lm_head[:-1]) if rank else own

    with pytest.raises(RankError, match=r"rank 0 called all_gather\(float32 \[1, 256\], dim 1\)"):
        generate(tiny(), share, Request((1,), 2), tp=2)


def test_ranks_that_pick_different_tokens_are_an_error(
    tiny_weights: ModelWeights, monkeypatch: pytest.MonkeyPatch
) -> None:
    picks = iter([4, 5])
    monkeypatch.setattr("kimi_k3.generate.pick", lambda *_: next(picks))
    with pytest.raises(RankError, match=r"rank 0 generated \(4,\), rank 1 \(5,\)"):
        generate(tiny(), lambda r: shard(tiny_weights, tiny(), 2, r), Request((1,), 1), tp=2)


def test_help_needs_no_torch_and_names_both_backends() -> None:
    done = run("--help")
    assert done.exit_code == 0
    assert "[auto|latency_specialized]" in done.output

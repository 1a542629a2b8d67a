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
from kimi_k3.assembly import shard
from kimi_k3.backends import Setup
from kimi_k3.checkpoint import save_checkpoint
from kimi_k3.cli import cli
from kimi_k3.config import tiny
from kimi_k3.decode.packaged import packaged_manifest
from kimi_k3.engine.options import EngineConfig
from kimi_k3.engine.request import Request
from kimi_k3.engine.sampler import StepLogits
from kimi_k3.engine.speculation import NO_SPECULATION
from kimi_k3.generate import generate
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


def ids_of(*arguments: str) -> list[int]:
    """The ids of the only prompt."""
    (result,) = answer(*arguments)["results"]
    ids: list[int] = result["token_ids"]
    return ids


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
        ",".join(map(str, answer("--prompt-ids", "1,2,3")["results"][0]["token_ids"])),
        "providers: stock; tp 1, dcp 1; weights: random, seed 0",
    ]


def generated(
    weights: ModelWeights, requests: Sequence[Request], policy: Rounding, tp: int = 1, dcp: int = 1
) -> list[tuple[int, ...]]:
    shares = [shard(weights, tiny(), tp, rank) for rank in range(tp)]
    setup = Setup(tiny(), EngineConfig(dcp=dcp), tp, rounding=policy)
    return [r.tokens for r in generate(setup, shares.__getitem__, requests).results]


@pytest.mark.parametrize(("tp", "dcp"), [(1, 1), (2, 1), (4, 4)])
def test_in_float64_the_ids_are_the_greedy_ones_of_the_oracle_however_split(
    tp: int, dcp: int, untied_weights: ModelWeights
) -> None:
    policy = exact(torch.float64)
    got = generated(untied_weights, [Request(PROMPT, 5)], policy, tp, dcp)
    ids, logits = greedy_without_cache(untied_weights, 5, policy)
    best, second = logits.topk(2).values.unbind(1)
    assert float((best - second).min()) > 1e-6  # no token hangs on a last bit
    assert list(got[0]) == ids


def test_several_prompts_side_by_side_continue_as_each_does_alone(
    untied_weights: ModelWeights,
) -> None:
    policy = exact(torch.float64)
    requests = [Request((1, 2, 3), 4), Request((9,), 3), Request(tuple(range(40)), 2)]
    together = generated(untied_weights, requests, policy)
    assert together == [generated(untied_weights, [r], policy)[0] for r in requests]


def test_sixteen_ranks_that_share_the_cache_agree() -> None:
    got = answer(
        *("--config", "tiny16", "--tp", "16", "--dcp", "16"),
        *("--prompt-ids", "1,2,3", "--max-tokens", "2"),
    )
    assert (got["tp"], got["dcp"], len(got["results"][0]["token_ids"])) == (16, 16, 2)


def test_json_says_what_text_says() -> None:
    arguments = ("--prompt-ids", "1, 2,3", "--prompt-ids", "4", "--max-tokens", "2", "--tp", "2")
    got, text = answer(*arguments), run(*arguments).stdout.splitlines()
    assert text[2:] == ["providers: stock; tp 2, dcp 1; weights: random, seed 0"]
    shown = [[int(token) for token in line.split(",")] for line in text[:2]]
    assert [result["token_ids"] for result in got["results"]] == shown
    assert {result["finish_reason"] for result in got["results"]} == {"length"}
    assert {key: got[key] for key in ("version", "backend", "region", "providers", "steps")} == {
        "version": 2,
        "backend": "auto",
        "region": None,
        "providers": ["stock"],
        "steps": {},
    }
    assert (got["tp"], got["dcp"], got["weights"]) == (2, 1, "random, seed 0")


SPECIALISED = ("--config", "mini", "--backend", "latency_specialized")


def test_virtual_ranks_run_the_specialised_path_and_every_result_says_who_served() -> None:
    arguments = (*SPECIALISED, "--virtual-ranks", "--prompt-ids", "1,2,3", "--max-tokens", "4")
    got, text = answer(*arguments), run(*arguments).stdout.splitlines()
    assert got["providers"] == ["reference", "stock"]
    assert got["steps"] == {"prefill": 1, "planned": 3}
    assert set(got["operators"].values()) == {"reference"}
    assert got["region"] == "cpu-virtual-tp1"
    assert text[1] == "providers: reference, stock; tp 1, dcp 1; weights: random, seed 0"
    assert text[2] == "steps: 1 prefill, 3 planned"
    for note in got["notes"]:
        assert note in text
    assert any("virtual ranks: one device, not a deployment" in note for note in got["notes"])


@pytest.mark.parametrize("more", [("--tp", "2", "--dcp", "2"), ("--kv", "fp8"), ("--draft", "3")])
def test_the_specialised_path_runs_with(more: tuple[str, ...]) -> None:
    arguments = ("--virtual-ranks", "--prompt-ids", "5,6,5,6,5", "--max-tokens", "6", *more)
    got = answer(*SPECIALISED, *arguments)
    assert len(got["results"][0]["token_ids"]) == 6
    assert got["steps"]["planned"] > 0


@pytest.mark.parametrize("draft", [2, 4])
def test_full_windows_of_any_draft_are_planned(draft: int) -> None:
    got = answer(
        *SPECIALISED,
        *("--virtual-ranks", "--draft", str(draft), "--synthetic-acceptance-length", "2"),
        *("--prompt-ids", "1", "--prompt-ids", "2", "--max-tokens", "7"),
    )
    assert set(got["steps"]) == {"prefill", "planned"}


def test_equal_prompts_draw_different_tokens_and_the_same_ones_again() -> None:
    arguments = ("--prompt-ids", "5,5", "--prompt-ids", "5,5", "--temperature", "2")
    first, second = (result["token_ids"] for result in answer(*arguments)["results"])
    assert first != second
    assert [r["token_ids"] for r in answer(*arguments)["results"]] == [first, second]


def test_a_refusal_is_json_when_json_is_asked_for() -> None:
    done = run(*SPECIALISED, "--prompt-ids", "1", "--format", "json")
    assert done.exit_code == 1
    refused = json.loads(done.stdout)
    assert (refused["version"], refused["backend"]) == (2, "latency_specialized")
    assert [f"  - {reason}" for reason in refused["refused"]] == done.stderr.splitlines()[1:]


def test_synthetic_drafts_are_counted_and_their_text_is_said_to_mean_nothing() -> None:
    arguments = (
        *("--prompt-ids", "1,2,3", "--max-tokens", "24", "--draft", "3"),
        *("--drafter", "synthetic", "--synthetic-acceptance-length", "3"),
    )
    got, text = answer(*arguments), run(*arguments).stdout.splitlines()
    counts = got["speculation"]
    assert counts["acceptance_length"] == pytest.approx(3)
    assert text[2] == (
        f"drafts: {counts['accepted']} of {counts['drafted']} tokens accepted; 3.00 tokens per "
        f"window with a draft, which {counts['drafts']} of {counts['windows']} windows had"
    )
    assert got["results"][0]["notes"] == ["meaningless text"]
    assert text[-1] == "meaningless text"


@pytest.mark.parametrize(
    ("tokens", "why"),
    [
        ("1", "none: each prompt's own step gave the only token that was asked for"),
        ("2", "in 0 of 1 windows: their last tokens stand nowhere before"),
    ],
)
def test_no_drafts_have_a_reason(tokens: str, why: str) -> None:
    quiet = run("--prompt-ids", "1", "--max-tokens", tokens, "--draft", "3").stdout.splitlines()
    assert quiet[-1] == f"drafts: {why}"


def test_a_checkpoint_brings_its_configuration_and_its_weights(
    tmp_path: Path, tiny_weights: ModelWeights
) -> None:
    save_checkpoint(tiny_weights, tmp_path, tiny(), shards=2)
    arguments = ("--prompt-ids", "1,2,3", "--max-tokens", "3", "--seed", "9")
    got = answer("--weights", str(tmp_path), *arguments)
    want = generated(tiny_weights, [Request((1, 2, 3), 3)], stock())
    assert got["results"][0]["token_ids"] == list(want[0])
    assert got["weights"] == str(tmp_path)
    assert answer(*arguments)["results"] != got["results"]
    wrong = problems("--weights", str(tmp_path), "--config", "mini", "--tp", "2", *arguments)
    assert any("want shape [512, 192]" in line for line in wrong)
    (tmp_path / "config.json").unlink()
    (alone,) = problems("--weights", str(tmp_path), *arguments)
    assert "no config.json beside it; want one, or --config" in alone


def test_sampled_tokens_are_the_same_on_every_rank_and_at_every_call() -> None:
    arguments = ("--prompt-ids", "1,2,3", "--max-tokens", "3", "--temperature", "3", "--tp", "2")
    assert answer(*arguments) == answer(*arguments)
    assert ids_of(*arguments) != ids_of(*arguments[:4], "--tp", "2")


def test_the_specialised_backend_is_refused_with_every_reason_of_the_gate() -> None:
    done = run(*SPECIALISED, "--prompt-ids", "1,2,3", "--max-tokens", "8")
    assert (done.exit_code, done.stdout) == (1, "")
    first, *reasons = done.stderr.splitlines()
    assert first == ("decode_backend latency_specialized is refused; decode_backend auto runs here")
    assert reasons[0].startswith("  - the model is not the published Kimi K3")
    regions = [region.id for region in packaged_manifest().scope]
    assert [line.split(":")[0] for line in reasons[1:]] == [f"  - {name}" for name in regions]


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
        ["GB of weights, state, cache and mailboxes; want at most 17.2 GB: all ranks live in one"],
    ),
    "a GPU where there is none": (
        ["--prompt-ids", "1", "--device", "cuda"],
        ["--device: saw no CUDA device that PyTorch can use; want one; fix: --device cpu"],
    ),
    "several ranks on one GPU": (
        ["--prompt-ids", "1", "--device", "cuda", "--tp", "2"],
        ["--tp: saw 2 ranks on one GPU; want --tp 1, or --device cpu"],
    ),
    "virtual ranks of the stock path": (
        ["--prompt-ids", "1", "--virtual-ranks"],
        ["--virtual-ranks: saw backend auto; want --backend latency_specialized with it"],
    ),
    "synthetic drafts of no length": (
        ["--prompt-ids", "1", "--drafter", "synthetic"],
        [
            "--draft: saw 0; want at least 1 token",
            "--synthetic-acceptance-length, --synthetic-acceptance-rates: saw neither; want exact",
        ],
    ),
    "a synthetic acceptance that is too long": (
        ["--prompt-ids", "1", "--draft", "3", "--synthetic-acceptance-length", "5"],
        ["--synthetic-acceptance-length: saw 5.0; want a number from 1 to 4"],
    ),
    "rates that are no numbers": (
        ["--prompt-ids", "1", "--draft", "2", "--synthetic-acceptance-rates", "0.9,x"],
        ["--synthetic-acceptance-rates: saw '0.9,x'; want numbers, such as 0.9,0.5"],
    ),
    "n-grams of no length": (
        ["--prompt-ids", "1", "--drafter", "ngram"],
        ["--draft: saw 0 with --drafter ngram; want at least 1 token"],
    ),
    "rates that rise": (
        ["--prompt-ids", "1", "--draft", "2", "--synthetic-acceptance-rates", "0.5,0.9"],
        ["--synthetic-acceptance-rates: saw 0.5, 0.9; want rates that never rise"],
    ),
    "a synthetic acceptance of n-grams": (
        [
            *("--prompt-ids", "1", "--draft", "2", "--drafter", "ngram"),
            *("--synthetic-acceptance-length", "2"),
        ],
        ["--drafter: saw a synthetic acceptance for the n-gram drafter; want --drafter synth"],
    ),
    "a division that neither backend can make": (
        [*SPECIALISED, "--virtual-ranks", "--prompt-ids", "1", "--tp", "2", "--dcp", "3"],
        ["--dcp: saw 3; want 1 or the value of --tp, 2"],
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


@pytest.mark.parametrize("part", ["state", "cache", "mailboxes"])
def test_memory_counts_whatever_takes_it(part: str, tiny_weights: ModelWeights) -> None:
    """Each alone is past the limit; nothing is allocated before the refusal."""
    draft = 7 if part == "state" else 0
    options = EngineConfig(
        max_requests=200_000 if part == "state" else 1,
        page_size=2**29 if part == "cache" else 16,
        speculation=replace(NO_SPECULATION, draft=draft),
    )
    region = None
    if part == "mailboxes":
        first = next(r for r in packaged_manifest().scope if r.id == "cpu-virtual-tp1")
        region = first.model_copy(update={"rows_max": 2**21})
    requests = [Request((1,), 1)] * (200_000 if part == "state" else 1)
    with pytest.raises(InputError, match="GB of weights, state, cache and mailboxes"):
        generate(Setup(tiny(), options), lambda _: tiny_weights, requests, region)


def setup(tp: int) -> Setup:
    return Setup(tiny(), EngineConfig(), tp)


def test_weights_that_compute_no_numbers_are_refused_on_any_number_of_ranks(
    tiny_weights: ModelWeights,
) -> None:
    norm = tiny_weights.norm.clone()
    norm[5] = torch.nan
    broken = replace(tiny_weights, norm=norm)
    for tp in (1, 2):
        shares = [shard(broken, tiny(), tp, rank) for rank in range(tp)]
        with pytest.raises(InputError, match="logits that are no finite numbers at token 0"):
            generate(setup(tp), shares.__getitem__, [Request((1,), 2)])


def test_shares_of_different_models_do_not_pass_for_one(tiny_weights: ModelWeights) -> None:
    def share(rank: int) -> ModelWeights:
        own = shard(tiny_weights, tiny(), 2, rank)
        return replace(own, lm_head=own.lm_head[:-1]) if rank else own

    with pytest.raises(RankError, match=r"rank 0 called all_gather\(float32 \[1, 256\], dim 1\)"):
        generate(setup(2), share, [Request((1,), 2)])


def test_ranks_that_pick_different_tokens_are_an_error(
    tiny_weights: ModelWeights, monkeypatch: pytest.MonkeyPatch
) -> None:
    picks = iter([4, 5])

    class Disagreeing(StepLogits):
        def __init__(self, logits: torch.Tensor) -> None:
            super().__init__(logits)
            self.best = [next(picks)]

    monkeypatch.setattr("kimi_k3.engine.engine.StepLogits", Disagreeing)
    with pytest.raises(RankError, match=r"rank 0 generated \[\(4,\)\], rank 1 others"):
        generate(setup(2), lambda r: shard(tiny_weights, tiny(), 2, r), [Request((1,), 1)])


def test_help_needs_no_torch_and_names_both_backends() -> None:
    done = run("--help")
    assert done.exit_code == 0
    assert "[auto|latency_specialized]" in done.output

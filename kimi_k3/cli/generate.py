# SPDX-License-Identifier: Apache-2.0
"""`kimi-k3 generate`: prompts continued by the model, and what computed them."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fasttrack.errors import Exit, InputError
from kimi_k3.cli.generated import FORMAT_VERSION, as_json, as_text, drafts
from kimi_k3.cli.options import dcp_option, decode_operators_option, format_option
from kimi_k3.config import K3Config, named
from kimi_k3.decode.deployment import Deployment, Features, Formats
from kimi_k3.decode.packaged import packaged_policy
from kimi_k3.decode.scope import Refused, admit
from kimi_k3.sharding import Sharding

if TYPE_CHECKING:
    from kimi_k3.engine.speculation import Speculation

MAX_TOKENS = 1_048_576
MAX_DRAFT = 7


@click.command()
@click.option(
    "--config",
    "name",
    metavar="tiny|tiny16|mini|FILE",
    help="A built-in configuration or a published config.json  [default: the one beside --weights, "
    "else tiny]",
)
@click.option(
    "--backend",
    type=click.Choice(["auto", "latency_specialized"]),
    default="auto",
    show_default=True,
    help="What computes the steps.",
)
@click.option(
    "--virtual-ranks",
    is_flag=True,
    help="Let latency_specialized run on simulated ranks; every result says so.",
)
@decode_operators_option
@click.option(
    "--prompt-ids",
    "prompts",
    required=True,
    multiple=True,
    metavar="ID,ID,...",
    help="Token ids; several prompts are continued side by side.",
)
@click.option(
    "--max-tokens",
    type=click.IntRange(1, MAX_TOKENS),
    default=8,
    show_default=True,
    help="Tokens to generate for each prompt.",
)
@click.option(
    "--tp", type=click.IntRange(1), default=1, show_default=True, help="Ranks, in this process."
)
@dcp_option
@click.option(
    "--device",
    type=click.Choice(["cpu", "cuda"]),
    default="cpu",
    show_default=True,
    help="Where to compute; one GPU holds one rank.",
)
@click.option(
    "--weights",
    type=click.Path(exists=True, path_type=Path),
    help="A safetensors checkpoint; without it, random weights.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**63),
    default=0,
    show_default=True,
    help="Of random weights, of synthetic drafts, and of the first prompt's sampling; each next "
    "prompt samples with the next seed.",
)
@click.option(
    "--temperature",
    type=float,
    default=0.0,
    show_default=True,
    help="0 picks the most likely token; above 0 samples.",
)
@click.option(
    "--kv",
    type=click.Choice(["bf16", "fp8"]),
    default="bf16",
    show_default=True,
    help="Format of the KV cache.",
)
@click.option(
    "--draft",
    type=click.IntRange(0, MAX_DRAFT),
    default=0,
    show_default=True,
    help="Draft tokens of a verify window.",
)
@click.option(
    "--drafter",
    type=click.Choice(["ngram", "synthetic"]),
    help="Who drafts; text from synthetic drafts means nothing  [default: synthetic with one of "
    "its options, else ngram]",
)
@click.option(
    "--synthetic-acceptance-length",
    "length",
    type=float,
    metavar="TOKENS",
    help="Tokens per window that synthetic drafts give on average, 1 to 1 + draft.",
)
@click.option(
    "--synthetic-acceptance-rates",
    "rates",
    metavar="RATE,...",
    help="Instead: how often each draft token stands with all before it.",
)
@format_option
def command(
    name: str | None,
    backend: str,
    virtual_ranks: bool,
    decode_operators: str,
    prompts: tuple[str, ...],
    max_tokens: int,
    tp: int,
    dcp: int,
    device: str,
    weights: Path | None,
    seed: int,
    temperature: float,
    kv: str,
    draft: int,
    drafter: str | None,
    length: float | None,
    rates: str | None,
    form: str,
) -> None:
    """Continue prompts of token ids and print the new ids, a line for each prompt.

    What computed them is printed with the result. The same command prints the same ids.
    """
    from kimi_k3.mini.scope import admit_operators

    ids = [token_ids(prompt) for prompt in prompts]
    config = named(beside(weights) if name is None else name)
    Sharding(config, tp, 0, dcp)
    if virtual_ranks and backend == "auto":
        want = "--backend latency_specialized with it: auto runs anywhere"
        raise InputError.one("--virtual-ranks", "backend auto", want)
    context = max(map(len, ids)) + max_tokens - 1
    deployment = this_process(
        config, backend, hardware(device, tp), tp, dcp, len(ids), draft, context, kv, virtual_ranks
    )
    try:
        admission = admit(deployment)
        admission = admit_operators(decode_operators, deployment, admission)
    except Refused as refused:
        if form == "json":
            answer = {"version": FORMAT_VERSION, "backend": backend, "refused": refused.reasons}
            click.echo(json.dumps(answer))
        for line in refused.lines():
            click.echo(line, err=True)
        sys.exit(Exit.REFUSED)

    from kimi_k3.backends import Setup
    from kimi_k3.decode.plan import RowCounts
    from kimi_k3.engine.options import EngineConfig
    from kimi_k3.engine.request import Request, Sampling
    from kimi_k3.generate import generate, weights_source

    options = EngineConfig(
        max_requests=len(ids),
        dcp=dcp,
        speculation=speculation(config, draft, drafter, length, rates, seed),
        padding=RowCounts().padded_requests,
        device=device,
    )
    requests = [
        Request(prompt, max_tokens, Sampling(temperature, seed=seed + place))
        for place, prompt in enumerate(ids)
    ]
    setup = Setup(
        config,
        options,
        tp,
        fp8_cache=kv == "fp8",
        decode_operators=decode_operators,
    )
    source = weights_source(config, tp, weights, seed)
    generated = generate(setup, source, requests, admission.region)
    origin = f"random, seed {seed}" if weights is None else str(weights)
    if form == "json":
        click.echo(as_json(generated, admission, (tp, dcp), origin))
        return
    click.echo(as_text(generated, admission, (tp, dcp), origin))
    if options.speculation.draft:
        click.echo(drafts(generated))
    for note in dict.fromkeys(note for result in generated.results for note in result.notes):
        click.echo(note)


def this_process(
    config: K3Config,
    backend: str,
    hardware: str,
    tp: int,
    dcp: int,
    requests: int,
    draft: int,
    context: int,
    kv: str,
    virtual_ranks: bool,
) -> Deployment:
    """What the gate must know of generating in one process."""
    return Deployment(
        decode_backend=backend,
        config=config,
        hardware=hardware,
        tp=tp,
        dcp=dcp,
        max_requests=requests,
        draft_tokens=draft,
        max_context=context,
        graph_mode="eager",
        formats=Formats(
            weights="mxfp4",
            activations="bf16",
            kv_cache="fp8_e4m3" if kv == "fp8" else "bf16",
            conv_state="bf16",
            recurrent_state="fp32",
        ),
        features=Features.absent(),
        virtual_ranks=virtual_ranks,
    )


def hardware(device: str, tp: int) -> str:
    """The hardware as the gate knows it.

    Raises:
        InputError: there is no GPU, or it would have to hold several ranks.
    """
    if device == "cpu":
        return device
    if tp > 1:
        raise InputError.one("--tp", f"{tp} ranks on one GPU", "--tp 1, or --device cpu")
    import torch

    if not torch.cuda.is_available():
        saw = "no CUDA device that PyTorch can use"
        raise InputError.one("--device", saw, "one", "--device cpu")
    return packaged_policy().hardware_id(torch.cuda.get_device_name())


def speculation(
    config: K3Config,
    draft: int,
    drafter: str | None,
    length: float | None,
    rates: str | None,
    seed: int,
) -> "Speculation":
    """Who drafts, and who judges.

    Raises:
        InputError: options that do not go together, or numbers out of their range.
    """
    from kimi_k3.engine.speculation import NO_SPECULATION, ngram, synthetic
    from kimi_k3.generate import in_options

    rated = not (length is None and rates is None)
    if drafter == "ngram" and not draft:
        raise InputError.one("--draft", "0 with --drafter ngram", "at least 1 token")
    if drafter == "ngram" and rated:
        saw = "a synthetic acceptance for the n-gram drafter"
        raise InputError.one("--drafter", saw, "--drafter synthetic, or no synthetic acceptance")
    if drafter != "synthetic" and not rated:
        return ngram(draft) if draft else NO_SPECULATION
    try:
        return synthetic(
            draft,
            config.vocab_size,
            acceptance_length=length,
            acceptance_rates=None if rates is None else numbers(rates),
            seed=seed,
        )
    except InputError as error:
        raise InputError([in_options(problem) for problem in error.problems]) from error


def token_ids(text: str) -> tuple[int, ...]:
    """The ids of `1,2,3`.

    Raises:
        InputError: something else stands between the commas.
    """
    ids = []
    for piece in text.split(","):
        digits = piece.strip()
        if not (digits.isascii() and digits.isdecimal() and len(digits) < 10):
            raise InputError.one("--prompt-ids", repr(piece[:40]), "token ids, such as 1,2,3")
        ids.append(int(digits))
    return tuple(ids)


def numbers(text: str) -> tuple[float, ...]:
    """The numbers of `0.9,0.5`.

    Raises:
        InputError: something else stands between the commas.
    """
    try:
        return tuple(float(piece) for piece in text.split(","))
    except ValueError as error:
        want = "numbers, such as 0.9,0.5"
        raise InputError.one("--synthetic-acceptance-rates", repr(text[:40]), want) from error


def beside(weights: Path | None) -> str:
    """The configuration that goes with a checkpoint.

    Raises:
        InputError: no `config.json` lies beside it.
    """
    if weights is None:
        return "tiny"
    path = (weights if weights.is_dir() else weights.parent) / "config.json"
    if not path.is_file():
        want = "one, or --config with the model's"
        raise InputError.one(f"--weights {weights}", "no config.json beside it", want)
    return str(path)

# SPDX-License-Identifier: Apache-2.0
"""`kimi-k3 generate`: a prompt continued by the model, and what computed it."""

import json
import sys
from pathlib import Path

import click

from fasttrack.errors import Exit, InputError
from fasttrack.manifest.admission import Question
from kimi_k3.cli.options import dcp_option, format_option
from kimi_k3.config import named
from kimi_k3.decode.scope import packaged_manifest, refusals

FORMAT_VERSION = 1
MAX_TOKENS = 1_048_576


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
@click.option("--prompt-ids", "prompt", required=True, metavar="ID,ID,...", help="Token ids.")
@click.option(
    "--max-tokens",
    type=click.IntRange(1, MAX_TOKENS),
    default=8,
    show_default=True,
    help="Tokens to generate.",
)
@click.option(
    "--tp", type=click.IntRange(1), default=1, show_default=True, help="Ranks, in this process."
)
@dcp_option
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
    help="Of random weights and of sampling.",
)
@click.option(
    "--temperature",
    type=float,
    default=0.0,
    show_default=True,
    help="0 picks the most likely token; above 0 samples.",
)
@format_option
def command(
    name: str | None,
    backend: str,
    prompt: str,
    max_tokens: int,
    tp: int,
    dcp: int,
    weights: Path | None,
    seed: int,
    temperature: float,
    form: str,
) -> None:
    """Continue a prompt of token ids on the CPU and print the new ids.

    All computation is the reference model's; that is printed with the result. The same command
    prints the same ids.
    """
    ids = token_ids(prompt)
    if backend == "latency_specialized":
        refuse(Question("cpu", tp, dcp, requests=1, draft=0, context=len(ids) + max_tokens - 1))
    config = named(beside(weights) if name is None else name)

    from kimi_k3.generate import PROVIDERS, Request, generate, weights_source

    request = Request(ids, max_tokens, temperature, seed)
    source = weights_source(config, tp, weights, seed)
    generated = generate(config, source, request, tp=tp, dcp=dcp)
    if form == "json":
        answer = {
            "version": FORMAT_VERSION,
            "backend": backend,
            "providers": PROVIDERS,
            "tp": tp,
            "dcp": dcp,
            "weights": "random" if weights is None else str(weights),
            "prompt_ids": ids,
            "token_ids": generated,
        }
        click.echo(json.dumps(answer))
        return
    origin = f"random, seed {seed}" if weights is None else str(weights)
    click.echo(",".join(map(str, generated)))
    click.echo(f"providers: {', '.join(PROVIDERS)}; tp {tp}, dcp {dcp}; weights: {origin}")


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


def refuse(question: Question) -> None:
    """Says why the specialised backend can not run here, and ends with exit code 1."""
    click.echo("kimi-k3: latency_specialized is refused; --backend auto runs here", err=True)
    for reason in refusals(packaged_manifest(), question):
        click.echo(f"  - {reason}", err=True)
    click.echo("  - this version has no decode kernels; every provider is the reference", err=True)
    sys.exit(Exit.REFUSED)

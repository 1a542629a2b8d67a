# SPDX-License-Identifier: Apache-2.0
"""`kimi-k3 config`: what a rank holds, without a GPU, torch or memory for it."""

import json
from dataclasses import asdict, fields

import click

from kimi_k3.activations import Load
from kimi_k3.cli.options import dcp_option, format_option
from kimi_k3.config import named
from kimi_k3.resident import Owner, ResidentTensor, Sums, resident, sums
from kimi_k3.sharding import Sharding
from kimi_k3.tensors import DType

KV_TYPES = {"bf16": DType.BF16, "fp8": DType.FP8}
FORMAT_VERSION = 1


@click.group()
def command() -> None:
    """Show shapes, bytes and owners of a model's tensors."""


@command.command()
@click.option(
    "--config",
    "name",
    default="full",
    show_default=True,
    metavar="full|tiny|tiny16|mini|FILE",
    help="A built-in configuration, or a published config.json.",
)
@click.option("--tp", type=click.IntRange(1), default=1, show_default=True, help="Ranks.")
@click.option("--rank", type=click.IntRange(0), default=0, show_default=True, help="This rank.")
@dcp_option
@click.option(
    "--rows", type=click.IntRange(1, 65536), default=1, show_default=True, help="Rows of a step."
)
@click.option(
    "--draft",
    type=click.IntRange(0, 64),
    default=0,
    show_default=True,
    help="Draft tokens per request.",
)
@click.option(
    "--kv",
    type=click.Choice(sorted(KV_TYPES)),
    default="bf16",
    show_default=True,
    help="Element type of the KV cache.",
)
@format_option
def show(
    name: str, tp: int, rank: int, dcp: int, rows: int, draft: int, kv: str, form: str
) -> None:
    """Print every tensor of one rank: name, shape, dtype, bytes, owner and equation.

    State and cache are those of one request, at the longest context. Activations are those of one
    step; layers share them.
    """
    sharding = Sharding(named(name), tp, rank, dcp)
    tensors = resident(sharding, Load(rows, draft, KV_TYPES[kv]))
    if form == "json":
        click.echo(as_json(name, sharding, tensors))
    else:
        click.echo(as_text(name, sharding, tensors))


def as_json(name: str, sharding: Sharding, tensors: tuple[ResidentTensor, ...]) -> str:
    """The table and its sums as one JSON object."""
    total = sums(tensors)
    return json.dumps(
        {
            "version": FORMAT_VERSION,
            "config": name,
            "tp": sharding.tp,
            "rank": sharding.rank,
            "dcp": sharding.dcp,
            "tensors": [
                {**asdict(t), "bytes": t.bytes, "live_bytes": t.live_bytes} for t in tensors
            ],
            "sums": {**asdict(total), "resident_weights": total.resident_weights},
        },
        indent=1,
    )


def as_text(name: str, sharding: Sharding, tensors: tuple[ResidentTensor, ...]) -> str:
    """One line per tensor name under its owner, and the sums."""
    parts = f"tp {sharding.tp}, rank {sharding.rank}, dcp {sharding.dcp}"
    lines = [f"{name}: {parts}", "bytes are those of all copies on this rank, with padding"]
    heads = ("name", "copies", "global", "this rank", "dtype", "bytes", "equation (spec)")
    for owner in Owner:
        owned = [t for t in tensors if t.owner is owner]
        if owned:
            lines += ["", owner.value, *_columns([heads, *(_cells(t) for t in owned)])]
    return "\n".join([*lines, "", *_sum_lines(sums(tensors))])


def _cells(t: ResidentTensor) -> tuple[str, ...]:
    padding = "" if t.shape == t.live else f" (live {_shape(t.live)})"
    return (
        t.name,
        str(t.copies),
        _shape(t.global_shape),
        _shape(t.shape) + padding,
        t.dtype.value,
        f"{t.bytes:,}",
        t.source,
    )


def _shape(shape: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, shape))}]"


def _columns(table: list[tuple[str, ...]]) -> list[str]:
    """Aligned columns; numbers to the right."""
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    right = {1, 5}
    return [
        "  ".join(
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]


def _sum_lines(total: Sums) -> list[str]:
    words = {
        "weights": "weights without padding and extra copies",
        "padding": "padding of experts and packed projections",
        "copies": "packed copies beside the tensors they are made of",
        "state": "state of one request",
        "cache": "KV cache of one request at the longest context",
        "activations": "activations of one step",
    }
    rows = [(words[f.name], getattr(total, f.name)) for f in fields(total)]
    rows.insert(3, ("weights, padding and copies together", total.resident_weights))
    width = max(len(word) for word, _ in rows)
    return ["sums", *(f"{word.ljust(width)}  {_bytes(value)}" for word, value in rows)]


def _bytes(value: int) -> str:
    return f"{value:>18,} bytes = {value / 1e9:,.2f} GB"

# SPDX-License-Identifier: Apache-2.0
"""`kimi-k3 validate`: kernels through the gates, and the gates through their controls."""

import secrets
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from fasttrack.errors import Exit, InputError
from kimi_k3.cli.options import format_option


@click.command()
@click.option(
    "--budget",
    type=click.Choice(["smoke", "evidence", "soak"]),
    default="smoke",
    show_default=True,
    help="How much is tried.",
)
@click.option(
    "--unit",
    "units",
    multiple=True,
    type=click.Choice(["attn-res", "stand-ins"]),
    help="What is validated; repeat  [default: all that this machine runs]",
)
@click.option("--variant", "only", multiple=True, metavar="ID", help="Only this one; repeat.")
@click.option(
    "--cache",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where cubins are kept  [default: ~/.cache/kimi-k3/kernels]",
)
@click.option("--seed", type=click.IntRange(0, 2**62), help="Of all draws  [default: a new one]")
@click.option(
    "--transport",
    type=click.Choice(["ipc", "copy"]),
    help="How a GPU's memory is shared with a candidate  [default: the closest that works]",
)
@click.option("--no-controls", is_flag=True, help="Leave the negative controls out.")
@format_option
def command(
    budget: str,
    units: Sequence[str],
    only: Sequence[str],
    cache: Path | None,
    seed: int | None,
    transport: str | None,
    no_controls: bool,
    form: str,
) -> None:
    """Judge kernels from outside: each runs in a process of its own, on memory of the judge's.

    Without a GPU plain stand-ins go through the same gates. Exits with 0 when no candidate is
    refused and every negative control is caught, else with 1.
    """
    import torch

    from kimi_k3.decode.kernels.build import default_cache
    from kimi_k3.validation.budget import BUDGETS
    from kimi_k3.validation.machine import machine
    from kimi_k3.validation.report import as_json, as_text
    from kimi_k3.validation.subjects import ON_CPU, UNITS
    from kimi_k3.validation.validate import validate

    here = machine("cuda" if torch.cuda.is_available() else "cpu")
    wanted = units or (ON_CPU if here.device == "cpu" else tuple(UNITS))
    if here.device == "cpu":
        torch.set_num_threads(1)  # stand-ins are small, and run beside the judge
    if here.device == "cpu" and (needy := [one for one in wanted if one not in ON_CPU]):
        raise InputError.one("--unit", f"{needy[0]}, and no GPU", f"one of {', '.join(ON_CPU)}")
    found = [one for unit in wanted for one in UNITS[unit](here.arch, cache or default_cache())]
    chosen = [one for one in found if not only or one.candidate.name in only]
    if not chosen:
        names = ", ".join(one.candidate.name for one in found)
        raise InputError.one("--variant", ", ".join(only), f"one of {names}")
    report = validate(
        chosen,
        BUDGETS[budget],
        [secrets.randbelow(2**62) if seed is None else seed],
        here,
        transport=transport,
        controls=0 if no_controls else None,
    )
    click.echo((as_json if form == "json" else as_text)(report))
    if not report.passed:
        sys.exit(Exit.REFUSED)

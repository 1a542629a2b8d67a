# SPDX-License-Identifier: Apache-2.0
"""Options that several commands share, so that each means the same everywhere."""

import click

dcp_option = click.option(
    "--dcp",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Ranks that share a KV cache's tokens: 1 or the value of --tp.",
)
format_option = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Output format.",
)
decode_operators_option = click.option(
    "--decode-operators",
    type=click.Choice(["reference", "prepared"]),
    default="reference",
    show_default=True,
    help="Who computes planned steps; prepared operators are for the mini model.",
)

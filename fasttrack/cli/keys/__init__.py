# SPDX-License-Identifier: Apache-2.0
"""`fasttrack keys`: a table of its commands, one module each."""

from collections.abc import Mapping

import click

from fasttrack.lazy_group import LazyGroup

COMMANDS: Mapping[str, str] = {
    "check": "Compare the policy's keys with the public key files beside it.",
    "new": "Make a private key, and print what the policy needs to trust it.",
    "show": "Print the public half of a key.",
}
"""Command name to its one-line help. Each lives in `fasttrack/cli/keys/<name>.py`."""


@click.group("keys", cls=LazyGroup, package="fasttrack.cli.keys", table=COMMANDS)
def command() -> None:
    """Make, show and check the keys that sign evidence."""

# SPDX-License-Identifier: Apache-2.0
"""Options that several commands share, so that each means the same everywhere."""

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import click


class UtcDay(click.ParamType[date]):
    """A day as `YYYY-MM-DD`."""

    name = "DATE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> date:
        """Parses the option's value."""
        if isinstance(value, date):
            return value
        try:
            return date.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is not a day such as 2026-11-29", param, ctx)


def today() -> date:
    """Today in UTC: the one place where a clock is read."""
    return datetime.now(UTC).date()


repo_option = click.option(
    "--repo",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="Repository, bare or not [the current directory].",
)
as_of_option = click.option(
    "--as-of", type=UtcDay(), default=today, help="UTC day to judge at [today]."
)
policy_from_option = click.option(
    "--policy-from", metavar="REF", help="Target tip to read the policy from."
)
evidence_option = click.option(
    "--evidence",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="More evidence, beside what the repository has.",
)
config_dir_option = click.option(
    "--config-dir", metavar="DIR", help="Folder of policy and manifests."
)
manifest_option = click.option(
    "--manifest", "name", metavar="NAME", help="Which manifest; needed when there are several."
)
format_option = click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
)

# SPDX-License-Identifier: Apache-2.0
"""`fasttrack explain`."""

import difflib

import click

from fasttrack.errors import InputError
from fasttrack.report.output import write_output
from fasttrack.report.rule_pages import rule_text
from fasttrack.rules import RULES


@click.command("explain")
@click.argument("rule", required=False)
@click.option("--all", "every", is_flag=True, help="Explain every rule.")
def command(rule: str | None, every: bool) -> None:
    """Tell what RULE (an id such as FT104, or a name such as symlink) refuses, and why."""
    if every == (rule is not None):
        raise click.UsageError("name one RULE, or use --all")
    if every:
        write_output("\n".join(rule_text(r) for r in RULES), None)
        return
    wanted = str(rule)
    found = next((r for r in RULES if wanted.upper() == r.id or wanted.lower() == r.slug), None)
    if found is None:
        known = [r.id for r in RULES] + [r.slug for r in RULES]
        near = difflib.get_close_matches(wanted, known, n=1)
        raise InputError.one(
            "RULE",
            repr(wanted),
            f"a rule id from {RULES[0].id} to {RULES[-1].id}, or a rule's name",
            f"fasttrack explain {near[0]}" if near else "fasttrack explain --all",
        )
    write_output(rule_text(found), None)

# SPDX-License-Identifier: Apache-2.0
"""`fasttrack evidence inputs`."""

from pathlib import Path

import click

from fasttrack.cli.options import config_dir_option, format_option, manifest_option, repo_option
from fasttrack.report.output import write_output


@click.command("inputs")
@click.argument("unit")
@repo_option
@config_dir_option
@manifest_option
@click.option("--head", metavar="REF", default="HEAD", show_default=True)
@format_option
def command(
    unit: str,
    repo: Path,
    config_dir: str | None,
    name: str | None,
    head: str,
    output_format: str,
) -> None:
    """List what the evidence of UNIT depends on, and why.

    UNIT is a unit of the manifest, `path` for all roots together, or `gate-files` for the gate.
    A change to a listed file makes evidence stale; a change to the boundary is told. Policy,
    manifest and files are read from the commit at --head, not from the working tree.
    """
    from fasttrack.change.read import read_revision
    from fasttrack.config import needed, read_base_manifests, read_config
    from fasttrack.evidence.inputs import InputGraph
    from fasttrack.report.inputs import inputs_json, inputs_text

    with read_revision(repo, head) as change:
        config = read_config(change, folder=config_dir, policy_file=None)
        manifest = read_base_manifests(change, config).named(name)
        with needed(f"the inputs of {unit}"):
            inputs = InputGraph(change, change.base, manifest, config).unit_inputs(unit)
        render = inputs_json if output_format == "json" else inputs_text
        write_output(render(inputs, manifest.name, change.head), None)

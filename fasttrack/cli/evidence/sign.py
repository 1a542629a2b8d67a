# SPDX-License-Identifier: Apache-2.0
"""`fasttrack evidence sign`."""

from functools import lru_cache
from pathlib import Path

import click

from fasttrack.cli.options import config_dir_option, repo_option
from fasttrack.errors import InputError
from fasttrack.policy.model import Trust
from fasttrack.report.output import write_output


@click.command("sign")
@repo_option
@config_dir_option
@click.option(
    "--bundle",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    required=True,
    help="What `evidence collect` wrote.",
)
@click.option(
    "--plan",
    "plan_file",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="The plan that was collected.",
)
@click.option(
    "--key",
    "key_file",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="Private key.",
)
@click.option("--key-id", metavar="ID", required=True, help="Its id in the policy.")
@click.option("--policy-from", metavar="REF", help="Target tip to read the policy from.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Store to add to [evidence/ in the configuration folder].",
)
def command(
    repo: Path,
    config_dir: str | None,
    bundle: Path,
    plan_file: Path,
    key_file: Path,
    key_id: str,
    policy_from: str | None,
    out: Path | None,
) -> None:
    """Compare a bundle with its plan and with git, and sign every statement.

    Nothing of the change is executed. The key's id must be one of the policy's, with the same
    public half.
    """
    from fasttrack.change.read import read_change, read_revision
    from fasttrack.config import needed, read_base_manifests, read_config
    from fasttrack.evidence import store
    from fasttrack.evidence.bundle import statements
    from fasttrack.evidence.inputs import InputGraph, UnitInputs
    from fasttrack.evidence.keyfile import read_public, read_signer
    from fasttrack.evidence.plan import read_plan
    from fasttrack.evidence.signing import signed_bundle

    plan, contents = read_plan(plan_file), statements(bundle)
    if contents.problems:
        raise InputError(contents.problems)
    with read_change(repo, head=plan.commit, policy_from=policy_from) as change:
        config = read_config(change, folder=config_dir, policy_file=None)
        with read_revision(repo, plan.commit) as revision:
            manifest = read_base_manifests(revision, config).named(plan.manifest.name)
            graph = InputGraph(revision, revision.base, manifest, config)

            @lru_cache
            def inputs_of(unit: str) -> UnitInputs:
                with needed(f"unit {unit}"):
                    return graph.unit_inputs(unit)

            _require_known(key_id, read_public(key_file), config.policy.trust)
            signer = read_signer(key_file, key_id)
            lines = signed_bundle(contents.entries, plan, inputs_of, signer)
    folder = out or repo / config.folder / store.FOLDER
    files = store.write(folder, lines)
    names = "".join(f"{file.name}\n" for file in files)
    write_output(f"{len(lines)} statements signed by {key_id} in {folder}\n{names}", None)


def _require_known(key_id: str, public: str, trust: Trust) -> None:
    """A signature that the policy can not tell whose it is would cover nothing."""
    known = {key.id: key.public for key in trust.keys}
    if known.get(key_id) != public:
        saw = f"{key_id!r}, which the policy " + (
            "has with another public half" if key_id in known else "does not have"
        )
        fix = "`fasttrack keys show FILE` prints the public half for `trust.keys` of the policy"
        raise InputError.one(
            "--key-id", saw, f"one of {', '.join(sorted(known)) or 'no keys'}", fix
        )

# SPDX-License-Identifier: Apache-2.0
"""`fasttrack evidence sign`."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fasttrack.case import Config
from fasttrack.cli.options import (
    as_of_option,
    config_dir_option,
    policy_from_option,
    repo_option,
)
from fasttrack.errors import InputError
from fasttrack.policy.trust import Trust
from fasttrack.report.output import write_output
from fasttrack.workspace import repository_top

if TYPE_CHECKING:
    from securesystemslib.signer import Signer

    from fasttrack.change.change import Change
    from fasttrack.evidence.plan import Plan

TARGET = "the target branch's tip"
"""How messages name the commit of the policy when nobody named one."""


@click.command("sign")
@repo_option
@config_dir_option
@click.option(
    "--bundle",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="What `evidence collect` or `import` wrote.",
)
@click.option(
    "--plan",
    "plan_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The plan that was collected.",
)
@click.option(
    "--resign",
    metavar="OLD",
    help="Instead of a bundle: sign again what counts under the key OLD in the store.",
)
@click.option(
    "--key",
    "key_file",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="Private key.",
)
@click.option("--key-id", metavar="ID", required=True, help="Its id in the policy.")
@policy_from_option
@as_of_option
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Store to add to [evidence/ in the configuration folder].",
)
def command(
    repo: Path,
    config_dir: str | None,
    bundle: Path | None,
    plan_file: Path | None,
    resign: str | None,
    key_file: Path,
    key_id: str,
    policy_from: str | None,
    as_of: date,
    out: Path | None,
) -> None:
    """Compare a bundle with its plan and with git, and sign every statement.

    Nothing of the change is executed. The key's id must be one of the policy's, with the same
    public half; the policy is that of the tip of the target branch (origin/HEAD, else main), or of
    --policy-from. With --resign, statements of the store are signed by a key that replaces another.
    """
    from fasttrack.change.read import read_change
    from fasttrack.config import read_config
    from fasttrack.evidence import store
    from fasttrack.evidence.keyfile import read_public, read_signer
    from fasttrack.evidence.plan import read_plan
    from fasttrack.evidence.resign import signed_again

    _require_one_mode(bundle, plan_file, resign)
    plan = None if plan_file is None else read_plan(plan_file)
    head = "HEAD" if plan is None else plan.commit
    with read_change(repo, head=head, policy_from=policy_from) as change:
        config = read_config(change, folder=config_dir, policy_file=None)
        where = f"{policy_from or TARGET} ({change.base_tip[:12]})"
        trust = config.policy.trust
        _require_known(key_id, read_public(key_file), trust, where)
        signer = read_signer(key_file, key_id)
        folder = out or (repository_top(repo) or repo) / config.folder / store.FOLDER
        if plan is not None and bundle is not None:
            lines = _signed(repo, change, config, bundle, plan=plan, signer=signer, day=as_of)
        else:
            stored = store.read_folder(folder).statements
            lines = signed_again(stored, trust, str(resign), signer, as_of)
    files = store.write(folder, lines)
    names = "".join(f"{file.name}\n" for file in files)
    counting = _counting(files, trust, as_of)
    said = f"{len(lines)} statements signed by {key_id}, {counting} of them count"
    write_output(f"{said}\n{names}", None)


def _require_one_mode(bundle: Path | None, plan: Path | None, resign: str | None) -> None:
    if (bundle is None) != (plan is None) or (bundle is None) == (resign is None):
        given = (("--bundle", bundle), ("--plan", plan), ("--resign", resign))
        saw = " and ".join(name for name, value in given if value is not None) or "none of them"
        raise InputError.one("sign", saw, "--bundle with --plan, or --resign")


def _signed(
    repo: Path,
    change: "Change",
    config: Config,
    bundle: Path,
    *,
    plan: "Plan",
    signer: "Signer",
    day: date,
) -> list[bytes]:
    from fasttrack.change.read import read_revision
    from fasttrack.config import read_base_manifests
    from fasttrack.evidence.bundle import statements
    from fasttrack.evidence.departure import departure, require_fresh, require_recent
    from fasttrack.evidence.derived import derived
    from fasttrack.evidence.inputs import InputGraph
    from fasttrack.evidence.signing import signed_bundle

    contents = statements(bundle)
    if contents.problems:
        raise InputError(contents.problems)
    with read_revision(repo, plan.commit) as revision:
        manifest = read_base_manifests(revision, config).named(plan.manifest.name)
        graph = InputGraph(revision, revision.base, manifest, config)
        found = derived(revision.base, manifest, graph)
        departed = departure(change, plan, config.folder)
        for entry in contents.entries:
            started = entry.statement.predicate.run.started
            require_recent(change, entry.where, started)
            require_fresh(entry.where, started.date(), day)
        return signed_bundle(contents.entries, plan, found, departed, signer)


def _counting(files: Sequence[Path], trust: Trust, day: date) -> int:
    """How many statements of these files count, whatever else the store holds."""
    from fasttrack.evidence.accept import accept
    from fasttrack.evidence.store import read_file

    stored = [one for file in files for one in read_file(file).statements]
    return sum(one.accepted for one in accept(stored, trust, day))


def _require_known(key_id: str, public: str, trust: Trust, where: str) -> None:
    """A signature that the policy can not tell whose it is would cover nothing."""
    known = {key.id: key.public for key in trust.keys}
    if known.get(key_id) != public:
        saw = f"{key_id!r}, which the policy of {where} " + (
            "has with another public half" if key_id in known else "does not have"
        )
        fix = (
            "`fasttrack keys show FILE` prints the public half for `trust.keys`; where another "
            "commit's policy has it, such as a branch's, `--policy-from REF` reads that one"
        )
        raise InputError.one(
            "--key-id", saw, f"one of {', '.join(sorted(known)) or 'no keys'}", fix
        )

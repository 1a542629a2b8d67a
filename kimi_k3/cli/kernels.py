# SPDX-License-Identifier: Apache-2.0
"""`kimi-k3 kernels`: the kernels of the decode path and their variants."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fasttrack.errors import Exit, InputError
from kimi_k3.cli.options import format_option

if TYPE_CHECKING:
    from fasttrack.manifest.variants import Variant
    from kimi_k3.decode.kernels.audit import Audited

FORMAT_VERSION = 1
Command = Callable[..., None]


@click.group()
def command() -> None:
    """Build, list, audit and tune the kernels of the decode path.

    Building needs NVIDIA's CuTe DSL and no GPU, auditing NVIDIA's disassembler too, tuning a GPU.
    """


def selection(function: Command) -> Command:
    """Which variants, and where their machine code is kept."""
    for option in (
        click.option(
            "--cache",
            type=click.Path(file_okay=False, path_type=Path),
            help="Where cubins are kept  [default: ~/.cache/kimi-k3/kernels]",
        ),
        click.option("--arch", "archs", multiple=True, help="Only of this architecture; repeat."),
        click.option("--variant", "ids", multiple=True, help="Only this variant; repeat."),
    ):
        function = option(function)
    return function


@command.command()
@selection
@format_option
def build(cache: Path | None, archs: Sequence[str], ids: Sequence[str], form: str) -> None:
    """Compile every variant that the cache lacks, for all architectures."""
    from kimi_k3.decode.kernels.catalogue import candidate

    rows = []
    for kernel, variant in chosen(archs, ids):
        built = candidate(kernel, variant, folder_of(cache)).built
        row = {"variant": variant.id, "sha256": built.digest, "seconds": built.seconds}
        rows.append(row | {"folder": str(built.folder)})
        if form == "text":
            click.echo(f"{variant.id}  {built.digest[:16]}  {built.seconds:.2f} s")
    say(form, {"built": rows}, f"{len(rows)} variants in {folder_of(cache)}")


@command.command("list")
@selection
@format_option
def list_(cache: Path | None, archs: Sequence[str], ids: Sequence[str], form: str) -> None:
    """Tell each variant, what it is launched with, and what compiling it took."""
    from kimi_k3.decode.kernels.build import cached, parameters_of
    from kimi_k3.decode.kernels.catalogue import launch_shape

    rows: list[dict[str, Any]] = []
    took: dict[str, float] = {}
    for kernel, variant in chosen(archs, ids):
        built = cached(kernel, variant, folder_of(cache))
        shape = launch_shape(kernel, parameters_of(variant))
        rows.append(
            {"variant": variant.id, "kernel": variant.kernel, "arch": variant.arch}
            | {"tp": variant.tp, "rows": list(variant.rows), "shape": shape.to_dict()}
            | {"seconds": built.seconds if built else None}
            | {"sha256": built.digest if built else None}
        )
        if built:
            took[built.digest] = built.seconds
        if form == "text":
            click.echo("  ".join(_listed(rows[-1])))
    total = round(sum(took.values()), 2)
    words = f"{len(rows)} variants, {len(took)} cubins built in {total:.2f} s"
    say(form, {"variants": rows, "cubins": len(took), "seconds": total}, words)


def _listed(row: dict[str, Any]) -> Iterator[str]:
    low, high = row["rows"]
    shape, seconds = row["shape"], row["seconds"]
    yield f"{row['variant']:<28} {row['arch']:<8} tp {row['tp']:<3} rows {low}-{high}"
    yield f"cluster {shape['cluster']} x {shape['block']} threads"
    yield "not built" if seconds is None else f"{seconds:.2f} s"


@command.command()
@selection
@format_option
def audit(cache: Path | None, archs: Sequence[str], ids: Sequence[str], form: str) -> None:
    """Prove of every variant that its machine code is in order, under its contract.

    Exits with 1 when one of them is violated or unproven.
    """
    from fasttrack.audit.finding import Verdict
    from kimi_k3.decode.kernels.audit import audited

    by_kernel: dict[str, list[Variant]] = {}
    for kernel, variant in chosen(archs, ids):
        by_kernel.setdefault(kernel, []).append(variant)
    found = []
    for kernel, variants in by_kernel.items():
        for one in audited(kernel, variants, folder_of(cache)):
            found.append(one)
            if form == "text":
                click.echo("\n".join(_audited(one)))
    bad = [one for one in found if one.verdict is not Verdict.PROVED]
    words = f"{len(found) - len(bad)} of {len(found)} cubins proved"
    say(form, {"audited": [_as_dict(one) for one in found]}, words)
    if bad:
        sys.exit(Exit.REFUSED)


def _audited(one: "Audited") -> Iterator[str]:
    yield f"{one.verdict.value}  {one.digest[:16]}  {', '.join(row.id for row in one.variants)}"
    for outcome in one.outcomes:
        for finding in outcome.audited.findings:
            yield f"  {finding.rule}: saw {finding.saw}; want {finding.want}"


def _as_dict(one: "Audited") -> dict[str, Any]:
    return {
        "sha256": one.digest,
        "variants": [row.id for row in one.variants],
        "verdict": one.verdict.value,
        "skeletons": [outcome.audited.skeleton for outcome in one.outcomes],
    }


@command.command()
@click.option(
    "--cache",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where cubins are kept  [default: ~/.cache/kimi-k3/kernels]",
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where the variant table is written.",
)
@click.option("--prepare", metavar="ARCH", help="Only build what would be measured there.")
def tune(cache: Path | None, output: Path | None, prepare: str | None) -> None:
    """Measure every tiling of the residual mix on this GPU, and write the table of the fastest.

    A GPU machine without a compiler takes the cubins from a cache that `--prepare` has filled.
    """
    if (output is None) == (prepare is None):
        raise InputError.one("kimi-k3 kernels tune", "no or both of them", "--output or --prepare")
    from kimi_k3.decode.kernels.tune import candidates, require_gpu, tuned

    if prepare is not None:
        click.echo(f"{len(candidates(prepare, folder_of(cache)))} tilings in {folder_of(cache)}")
    elif output is not None:
        text, lines = tuned(require_gpu(), folder_of(cache))
        output.write_text(text, encoding="utf-8")
        click.echo("\n".join([*lines, f"wrote {output}"]))


def folder_of(cache: Path | None) -> Path:
    """Where cubins are kept."""
    from kimi_k3.decode.kernels.build import default_cache

    return cache or default_cache()


def chosen(archs: Sequence[str], ids: Sequence[str]) -> "list[tuple[str, Variant]]":
    """The variants that were asked for, each with the folder of its kernel.

    Raises:
        InputError: there is no such variant or architecture.
    """
    from kimi_k3.decode.kernels.catalogue import table
    from kimi_k3.decode.kernels.registry import KERNELS

    known = [(kernel, variant) for kernel in KERNELS for variant in table(kernel).variants]
    for option, wanted, there in (
        ("--arch", archs, {variant.arch for _, variant in known}),
        ("--variant", ids, {variant.id for _, variant in known}),
    ):
        if strange := sorted(set(wanted) - there):
            want = "one of " + ", ".join(sorted(there)[:8])
            raise InputError.one(option, strange[0], want, "`kimi-k3 kernels list` has them all")
    return [
        (kernel, variant)
        for kernel, variant in known
        if (not archs or variant.arch in archs) and (not ids or variant.id in ids)
    ]


def say(form: str, result: dict[str, Any], words: str) -> None:
    """The end of a command's output: the whole as JSON, or the last line."""
    click.echo(
        json.dumps({"version": FORMAT_VERSION} | result, indent=1) if form == "json" else words
    )

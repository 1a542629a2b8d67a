# SPDX-License-Identifier: Apache-2.0
"""Where a report goes."""

from pathlib import Path

import click

from fasttrack.errors import InputError


def write_output(text: str, path: Path | None) -> None:
    """Prints `text`, or writes it to `path` as UTF-8.

    Raises:
        InputError: when the file can not be written.
    """
    if path is None:
        click.echo(text, nl=False, color=True)
        return
    try:
        path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise InputError.one(
            str(path), error.strerror or "not writable", "a file that can be written"
        ) from error

# SPDX-License-Identifier: Apache-2.0
"""How text may look where it is printed."""

import os
import shutil
import sys
import textwrap
from dataclasses import dataclass

import click


@dataclass(frozen=True)
class Style:
    """How wide and how colourful text may be."""

    width: int = 80
    colour: bool = False

    def paint(self, text: str, colour: str) -> str:
        """`text` in a colour and bold, or as it is."""
        return click.style(text, fg=colour, bold=True) if self.colour else text

    def wrapped(self, text: str, prefix: str) -> list[str]:
        """`text` in lines that fit, the first after `prefix`, the others below its end."""
        return textwrap.wrap(
            text,
            width=max(self.width, 40),
            initial_indent=prefix,
            subsequent_indent=" " * len(prefix),
            break_on_hyphens=False,
            break_long_words=False,
        ) or [prefix.rstrip()]


def terminal_style() -> Style:
    """The style of standard output: colours on a terminal only, and not when NO_COLOR is set."""
    on_terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if on_terminal else 80
    return Style(width=min(width, 100), colour=on_terminal and not os.environ.get("NO_COLOR"))

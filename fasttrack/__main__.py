# SPDX-License-Identifier: Apache-2.0
"""`python -m fasttrack`: the same program as the `fasttrack` command.

Run so, Python looks for every module in the current directory first, which may be a checkout of
what is judged: a `securesystemslib.py` there would see the key. Before anything else is imported
that directory is left out, unless fasttrack itself lies there.
"""

import os  # these two are loaded before the current directory is looked at, and no others
import sys


def _leave_out_current_directory() -> None:
    try:
        here = os.path.realpath(".")
    except FileNotFoundError:
        sys.stderr.write(
            "fasttrack: saw a current directory that is gone; want one that is there\n"
        )
        sys.exit(2)  # bad input, as for everything that the command itself finds
    own = os.path.realpath(os.path.join(__file__, "..", ".."))  # noqa: PTH118
    if not sys.flags.safe_path and os.path.realpath(sys.path[0]) == here != own:
        del sys.path[0]


if __name__ == "__main__":
    _leave_out_current_directory()

    from fasttrack.cli.main import main

    main()

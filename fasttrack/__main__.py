# SPDX-License-Identifier: Apache-2.0
"""`python -m fasttrack`: the same program as the `fasttrack` command."""

from fasttrack.cli.main import main

if __name__ == "__main__":
    main()

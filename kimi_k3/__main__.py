# SPDX-License-Identifier: Apache-2.0
"""`python -m kimi_k3`: the same program as the `kimi-k3` command."""

from kimi_k3.cli import main

if __name__ == "__main__":
    main()

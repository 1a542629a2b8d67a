# SPDX-License-Identifier: Apache-2.0
"""The mini model with a width that two warps divide, for which the residual mix is compiled.

python -m tests.gpu.wide_mini     builds its cubins into .gpu/kernels; needs the DSL, no GPU
"""

import json
import sys
from dataclasses import replace

from fasttrack.manifest.variants import Variant, load_variant_table
from kimi_k3.config import K3Config, mini
from kimi_k3.decode.kernels.attn_res.table import Choice, table
from kimi_k3.decode.kernels.build import HERE
from kimi_k3.decode.kernels.catalogue import candidate

CACHE = HERE.parents[2] / ".gpu" / "kernels"
KERNEL = "attn_res"


def wide_mini() -> K3Config:
    """The configuration."""
    return replace(mini(), hidden_size=512)


def rows() -> tuple[Variant, ...]:
    """Its variants for `sm_90a`."""
    text = json.dumps(table(wide_mini(), [Choice((1, 64), 2, 1)]))
    variants = load_variant_table(text, "the table of a wide mini model").variants
    return tuple(one for one in variants if (one.arch, one.tp) == ("sm_90a", 8))


def main() -> int:
    """Builds."""
    for one in rows():
        candidate(KERNEL, one, CACHE)
    print(f"{len(rows())} variants in {CACHE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

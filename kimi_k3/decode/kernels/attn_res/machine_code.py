# SPDX-License-Identifier: Apache-2.0
"""Makes the machine code of a variant for `fasttrack evidence collect`, out of no cache."""

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fasttrack.manifest.variants import Variant
from kimi_k3.decode.kernels.build import build


def cubin_of(variant: Mapping[str, Any]) -> bytes:
    """The machine code of a row of the variant table, compiled now.

    Raises:
        InputError: it does not compile.
    """
    row = Variant.model_validate_json(json.dumps(variant))
    with tempfile.TemporaryDirectory(prefix="kimi-k3-kernel-") as folder:
        return build(Path(__file__).parent.name, row, Path(folder)).cubin

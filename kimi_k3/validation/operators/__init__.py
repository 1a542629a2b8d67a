# SPDX-License-Identifier: Apache-2.0
"""What kernels compute, one file for each operator; one line here registers it."""

from collections.abc import Mapping

from kimi_k3.validation.operators.attn_res import AttnRes
from kimi_k3.validation.operators.base import Operator
from kimi_k3.validation.operators.delta_rule import DeltaRule

OPERATORS: Mapping[str, Operator] = {one.name: one for one in (AttnRes(), DeltaRule())}

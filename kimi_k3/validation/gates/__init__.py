# SPDX-License-Identifier: Apache-2.0
"""Gates in the order of their cost; one line here registers a gate."""

from kimi_k3.validation.gates.base import Gate, Outcome, State
from kimi_k3.validation.gates.identity import Identity
from kimi_k3.validation.gates.memory import MemoryContract
from kimi_k3.validation.gates.numerics import Numerics
from kimi_k3.validation.gates.protocol import ProtocolGate
from kimi_k3.validation.gates.provenance import Provenance
from kimi_k3.validation.gates.static import Static

GATES: tuple[Gate, ...] = (
    Provenance(),
    Static(),
    Numerics(),
    MemoryContract(),
    ProtocolGate(),
    Identity(),
)

__all__ = ["GATES", "Gate", "Outcome", "State"]

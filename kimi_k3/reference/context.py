# SPDX-License-Identifier: Apache-2.0
"""What every block is given besides its weights and its input."""

from dataclasses import dataclass, field, replace

from kimi_k3.config import K3Config
from kimi_k3.ranks import Communicator, SingleRank
from kimi_k3.reference.hooks import NoTap, Tap
from kimi_k3.rounding import Rounding


@dataclass(frozen=True)
class Context:
    """The model's constants, the rounding policy, and the ranks this one works with.

    Attributes:
        config: the whole model's configuration, the same on every rank.
        rounding: where values are rounded.
        comm: the tensor-parallel group.
        dcp: the group over which the tokens of the KV cache are spread: `SingleRank` when every
            rank holds all of them, else `comm` itself.
        tap: where intermediates go.
    """

    config: K3Config
    rounding: Rounding
    comm: Communicator = field(default_factory=SingleRank)
    dcp: Communicator = field(default_factory=SingleRank)
    tap: Tap = field(default_factory=NoTap)

    def tapped(self, tap: Tap) -> "Context":
        """The same with another tap."""
        return replace(self, tap=tap)

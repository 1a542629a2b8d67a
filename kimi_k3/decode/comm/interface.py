# SPDX-License-Identifier: Apache-2.0
"""What the decode path asks of its ranks' communication.

A `DecodeCommunicator` is a `Communicator`, so operators use it unchanged; but every exchange lies
in a step and has a site. In a step all ranks make the same exchanges with the same shapes, and the
k-th exchange of a site is the same in every step: *ordinals* are static, nothing else is.

A step of the executor:

    comm.begin_step(rows)                       # the step's first operation
    total = comm.at(Site.O_PROJ).all_reduce(partial)
    ...                                         # writes state only where not comm.failed
    comm.end_step()                             # raises before any token is released

A step that falls back uses `comm.stock` instead and neither begins nor ends: counter and mailboxes
stay as they are.
"""

from enum import StrEnum
from typing import Protocol

from kimi_k3.ranks import Communicator


class Site(StrEnum):
    """Where in a step an exchange lies."""

    EMBED = "embed"
    """Embedding rows, summed over vocabulary shards."""
    O_PROJ = "o_proj"
    """Shares of the attention output."""
    FFN = "ffn"
    """Shares of layer 0's FFN."""
    LATENT = "latent"
    """Weighted sums of expert rows."""
    SHARED = "shared"
    """Shares of the shared experts."""
    DCP = "dcp"
    """Queries, partial latents and their log-sum-exps under context parallelism."""
    LOGITS = "logits"
    """Logits of each vocabulary shard."""
    STEP = "step"
    """Exchanges of a caller that names none."""
    END = "end"
    """The last exchange of a step: every rank says that it got there."""


class DecodeCommunicator(Communicator, Protocol):
    """One rank's exchanges in planned steps; used directly, an exchange belongs to `Site.STEP`.

    After a failure every step and every collective, stock ones included, raises the same
    `health.DecodeFailure` until all ranks are rebuilt.
    """

    @property
    def stock(self) -> Communicator:
        """The collectives of steps that fall back."""

    @property
    def failed(self) -> bool:
        """Whether a wait of this step was in vain on some rank: then nothing may be kept of it."""

    def at(self, site: Site) -> Communicator:
        """The same group, for exchanges of one site."""

    def begin_step(self, rows: int) -> None:
        """Starts a planned step of `rows` rows; every exchange carries equally much per row."""

    def end_step(self) -> None:
        """Ends a planned step when all ranks have.

        Raises:
            health.DecodeFailure: a wait of any rank was in vain; the same record on every rank.
        """

# SPDX-License-Identifier: Apache-2.0
"""FT210: no network is used."""

from fasttrack.finding import Level
from fasttrack.meaning.kinds import Kind
from fasttrack.rules.isolation.effect_rule import EffectRule


class Network(EffectRule):
    """Effects of kind `network`."""

    id = "FT210"
    slug = "network"
    title = "no network is used"
    level = Level.ROUTE
    refuses = (
        "Governed code that opens a socket or uses a client library: `socket`, `urllib.request`, "
        "`http`, `requests`, `httpx` and the like. Collectives of `torch.distributed` pass."
    )
    why = (
        "A decode path has no business with the network; weights and configuration come from the "
        "engine."
    )
    blind = "Downloads that a called library makes on its own account."
    fix = "let the engine fetch what the path needs, and take it as an argument"
    kind = Kind.NETWORK
    want = "code that computes with what it is given"

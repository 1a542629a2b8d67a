# SPDX-License-Identifier: Apache-2.0
"""Whether an evaluation surely asked a model behind an endpoint.

A model in the tool's own process could write its own scores. So nothing counts as asked but what
is known to ask, in a version of the tool in which it is known, at an address that the results show.
A tool takes plugins, and a name says nothing about what they do.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from urllib.parse import urlsplit

Clients = Mapping[str, Set[str]]
"""Starts of a tool's versions to the clients that ask an endpoint in them."""
_SHOWN = 40


@dataclass(frozen=True)
class Asked:
    """What results say of how the model was asked; anything, as they are data of others.

    Attributes:
        client: what of the tool spoke to the model.
        version: the tool's.
        address: of the server.
    """

    client: object
    version: object
    address: object

    def is_served(self, known: Clients) -> bool:
        """Whether it is a known client of a known version, at an address."""
        version = str(self.version)
        clients = (names for start, names in known.items() if version.startswith(start))
        return any(str(self.client) in names for names in clients) and self._is_address()

    def __str__(self) -> str:
        """For messages."""
        at = f"at {self.address}" if self._is_address() else "without an address"
        return f"client {str(self.client)[:_SHOWN]!r} {at[: 2 * _SHOWN]}"

    def _is_address(self) -> bool:
        if not isinstance(self.address, str):
            return False
        try:
            parts = urlsplit(self.address)
        except ValueError:
            return False
        return parts.scheme in {"http", "https"} and bool(parts.hostname)

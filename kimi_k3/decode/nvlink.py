# SPDX-License-Identifier: Apache-2.0
"""Whether the ranks of a group reach each other's memory: they lie in one NVLink domain."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class NvlinkDomain:
    """Where a GPU lies in the NVLink fabric, as NVML reports it.

    Attributes:
        cluster: id of the fabric's cluster in hexadecimal; all zeros outside a fabric.
        clique: id of the clique in it.
    """

    cluster: str
    clique: int

    @property
    def in_fabric(self) -> bool:
        """Whether the GPU belongs to a fabric at all."""
        return any(digit not in "0-" for digit in self.cluster)


def domain_reasons(ranks: int, domains: Sequence[NvlinkDomain | None]) -> Iterator[str]:
    """Why a group is not known to lie in one domain; nothing when it does.

    Args:
        ranks: size of the group.
        domains: of each rank, rank 0 first; None where nobody could tell.
    """
    if len(domains) > ranks:
        yield f"could not tell the NVLink domains: {len(domains)} are given for {ranks} ranks"
    unknown = [r for r in range(ranks) if r >= len(domains) or domains[r] is None]
    if unknown:
        yield f"could not tell the NVLink domain of ranks {_numbers(unknown)}"
    outside = [r for r, domain in enumerate(domains) if domain and not domain.in_fabric]
    if outside:
        yield f"ranks {_numbers(outside)} lie in no NVLink domain"
    members: dict[NvlinkDomain, list[int]] = {}
    for rank, domain in enumerate(domains):
        if domain is not None and domain.in_fabric:
            members.setdefault(domain, []).append(rank)
    if len(members) > 1:
        where = "; ".join(
            f"ranks {_numbers(who)} in cluster {domain.cluster} clique {domain.clique}"
            for domain, who in members.items()
        )
        yield f"the ranks lie in {len(members)} NVLink domains: {where}"


def _numbers(ranks: Sequence[int]) -> str:
    return ", ".join(map(str, ranks))

# SPDX-License-Identifier: Apache-2.0
"""A group is admitted only when all its ranks are known to lie in one NVLink domain."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kimi_k3.decode.nvlink import NvlinkDomain, domain_reasons

CASES: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parents[2] / "cases/decode/nvlink.yaml").read_text("utf-8")
)
DOMAINS = st.builds(NvlinkDomain, st.sampled_from(["00-00", "0a", "a0"]), st.integers(0, 1))


@pytest.mark.parametrize("case", CASES, ids=[case["why"] for case in CASES])
def test_a_group_gets_every_reason(case: dict[str, Any]) -> None:
    domains = [None if one is None else NvlinkDomain(*one) for one in case["domains"]]
    assert list(domain_reasons(case["ranks"], domains)) == case["reasons"]


@given(st.integers(2, 5), st.lists(st.none() | DOMAINS, max_size=6))
def test_exactly_the_groups_of_one_known_fabric_domain_pass(
    ranks: int, domains: list[NvlinkDomain | None]
) -> None:
    one = len(domains) == ranks and len(set(domains)) == 1
    first = domains[0] if one else None
    passes = first is not None and "a" in first.cluster
    assert (list(domain_reasons(ranks, domains)) == []) == passes

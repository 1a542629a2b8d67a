# SPDX-License-Identifier: Apache-2.0
"""Pair covering: everything asked for is there, nothing is random, little is superfluous."""

from itertools import combinations, product
from math import prod

from hypothesis import given, settings
from hypothesis import strategies as st

from fasttrack.manifest.pairwise import covering, size_estimate

axes = st.lists(st.integers(1, 5), max_size=6).map(
    lambda sizes: {f"axis{i}": tuple(range(n)) for i, n in enumerate(sizes)}
)


@given(axes)
@settings(deadline=None)
def test_every_value_and_every_pair_occurs(given_axes: dict[str, tuple[int, ...]]) -> None:
    chosen = covering(given_axes, ())
    for axis, values in given_axes.items():
        assert {c[axis] for c in chosen} == set(values)
    for one, two in combinations(given_axes, 2):
        want = set(product(given_axes[one], given_axes[two]))
        assert {(c[one], c[two]) for c in chosen} == want


@given(axes)
@settings(deadline=None)
def test_the_choice_is_near_the_two_largest_axes_and_never_the_whole_product(
    given_axes: dict[str, tuple[int, ...]],
) -> None:
    sizes = [len(values) for values in given_axes.values()]
    chosen = covering(given_axes, ())
    assert len(chosen) <= min(prod(sizes), 2 * size_estimate(sizes))
    assert len({tuple(c.items()) for c in chosen}) == len(chosen)


@given(axes, st.data())
@settings(deadline=None)
def test_seeds_come_first_and_unchanged(
    given_axes: dict[str, tuple[int, ...]], data: st.DataObject
) -> None:
    seeds = data.draw(
        st.lists(st.fixed_dictionaries({a: st.sampled_from(v) for a, v in given_axes.items()}))
    )
    partial = [dict(list(seed.items())[:2]) for seed in seeds]
    chosen = covering(given_axes, partial)
    for seed, combination in zip(partial, chosen, strict=False):
        assert combination.items() >= seed.items()
    assert chosen == covering(given_axes, partial)


def test_without_axes_there_is_one_empty_combination() -> None:
    assert covering({}, ()) == ({},)

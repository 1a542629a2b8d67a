# SPDX-License-Identifier: Apache-2.0
"""Functions of other packages that mean something to a test, as tables.

A name is looked up as it is imported; where a package re-exports it under several names, each is
listed.
"""

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from fasttrack.testmodel.values import Value


@dataclass(frozen=True)
class Comparing:
    """A function that compares: what its tolerances are called, where they stand, and defaults.

    Attributes:
        positions: tolerance to its position among the arguments; 99 for keywords alone.
        defaults: tolerance to what counts when it is not given; absent when it depends on the
            operands, as in torch.
    """

    positions: Mapping[str, int] = field(default_factory=dict)
    defaults: Mapping[str, Value] = field(default_factory=dict)


_KEYWORD = 99
_TORCH = Comparing({"rtol": _KEYWORD, "atol": _KEYWORD})
_ALLCLOSE = Comparing({"rtol": 2, "atol": 3}, {"rtol": 1e-5, "atol": 1e-8})
_METHOD = Comparing({"rtol": 1, "atol": 2}, {"rtol": 1e-5, "atol": 1e-8})
_EXACT = Comparing()
_JAX = Comparing({"rtol": 2, "atol": 3}, {"rtol": 1e-6, "atol": 0.0})

ASSERTING: Mapping[str, Comparing] = {
    "torch.testing.assert_close": _TORCH,
    "torch.testing.assert_allclose": Comparing({"rtol": 2, "atol": 3}),
    "numpy.testing.assert_allclose": Comparing({"rtol": 2, "atol": 3}, {"rtol": 1e-7, "atol": 0.0}),
    "numpy.testing.assert_array_equal": _EXACT,
    "numpy.testing.assert_equal": _EXACT,
    "numpy.testing.assert_array_almost_equal": Comparing({"decimal": 2}, {"decimal": 6}),
    "numpy.testing.assert_almost_equal": Comparing({"decimal": 2}, {"decimal": 7}),
    "numpy.testing.assert_approx_equal": Comparing({"significant": 2}, {"significant": 7}),
    "numpy.testing.assert_array_less": _EXACT,
    "numpy.testing.assert_array_max_ulp": Comparing({"maxulp": 2}, {"maxulp": 1}),
    "numpy.testing.assert_array_almost_equal_nulp": Comparing({"nulp": 2}, {"nulp": 1}),
    "numpy.testing.assert_string_equal": _EXACT,
    "chex.assert_trees_all_close": _JAX,
    "chex.assert_trees_all_equal": _EXACT,
    "triton.testing.assert_close": Comparing({"atol": 2, "rtol": 3}),
}
"""Functions that fail a test when two things differ."""
PREDICATES: Mapping[str, Comparing] = {
    "torch.allclose": _ALLCLOSE,
    "torch.isclose": _ALLCLOSE,
    "numpy.allclose": _ALLCLOSE,
    "numpy.isclose": _ALLCLOSE,
    "jax.numpy.allclose": _ALLCLOSE,
    "jax.numpy.isclose": _ALLCLOSE,
    "math.isclose": Comparing({"rel_tol": 2, "abs_tol": 3}, {"rel_tol": 1e-9, "abs_tol": 0.0}),
    "cmath.isclose": Comparing({"rel_tol": 2, "abs_tol": 3}, {"rel_tol": 1e-9, "abs_tol": 0.0}),
    "pytest.approx": Comparing({"rel": 1, "abs": 2}, {"rel": 1e-6, "abs": 1e-12}),
    "torch.equal": _EXACT,
    "numpy.array_equal": _EXACT,
    "operator.eq": _EXACT,
}
"""Functions whose truth says that two things agree."""
METHODS: Mapping[str, Comparing] = {"allclose": _METHOD, "isclose": _METHOD, "equal": _EXACT}
"""The same as methods of a tensor or array."""
UNITTEST: Mapping[str, Comparing] = {
    "assertAlmostEqual": Comparing({"places": 2, "delta": _KEYWORD}, {"places": 7}),
    "assertAlmostEquals": Comparing({"places": 2, "delta": _KEYWORD}, {"places": 7}),
    "assertEqual": _EXACT,
    "assertEquals": _EXACT,
    "assertSequenceEqual": _EXACT,
    "assertListEqual": _EXACT,
    "assertTupleEqual": _EXACT,
    "assertDictEqual": _EXACT,
    "assertSetEqual": _EXACT,
    "assertCountEqual": _EXACT,
}
"""Methods of `unittest.TestCase` that compare contents."""
UNITTEST_COMPARING: Mapping[str, type[ast.cmpop]] = {
    "assertLess": ast.Lt,
    "assertLessEqual": ast.LtE,
    "assertGreater": ast.Gt,
    "assertGreaterEqual": ast.GtE,
    "assertIn": ast.In,
    "assertNotIn": ast.NotIn,
    "assertIs": ast.Is,
    "assertIsNot": ast.IsNot,
    "assertNotEqual": ast.NotEq,
}
"""Methods of `unittest.TestCase` that say what an operator says."""
WEAK_UNITTEST = frozenset({"assertTrue", "assertIsNotNone", "assertIsInstance", "assertFalse"})
TOLERANCE_NAMES = frozenset(
    [
        "rtol",
        "atol",
        "tol",
        "tolerance",
        "rel",
        "abs",
        "rel_tol",
        "abs_tol",
        "eps",
        "epsilon",
        "delta",
        "max_diff",
        "max_error",
        "threshold",
        "rtols",
        "atols",
        "decimal",
        "places",
        "significant",
        "maxulp",
        "nulp",
        "max_rel_err",
        "max_abs_err",
    ]
)
"""Keyword arguments that are tolerances of whatever function asserts."""
SMALLER_IS_LOOSER = frozenset({"decimal", "places", "significant", "at least"})
"""Dimensions in which the smaller value lets more pass."""
TORCH_DEFAULTS: Mapping[str, tuple[float, float]] = {"rtol": (1e-7, 1.6e-2), "atol": (1e-7, 1e-5)}
"""Smallest and largest default of torch over all types of operands."""

SEEDS = frozenset({
    "torch.manual_seed", "torch.random.manual_seed", "torch.cuda.manual_seed",
    "torch.cuda.manual_seed_all", "numpy.random.seed", "numpy.random.default_rng",
    "numpy.random.RandomState", "random.seed", "random.Random", "jax.random.PRNGKey",
    "jax.random.key", "hypothesis.seed", "torch.seed",
})  # fmt: skip
"""Functions that seed a generator of random numbers."""
SEED_NAMES = frozenset(
    {"manual_seed", "set_random_seed", "seed_everything", "set_seed", "seed_all"}
)
"""The same by the last part of the name: methods, and helpers of engines."""

SWALLOWED = frozenset({
    "AssertionError", "Exception", "BaseException", "builtins.AssertionError",
    "builtins.Exception", "builtins.BaseException",
})  # fmt: skip
"""Exceptions whose handlers catch a failing assertion."""
PATCHING = frozenset({"unittest.mock.patch", "mock.patch", "mocker.patch"})
"""What puts something in the place of an object that is named by text."""
PATCHING_OBJECTS = frozenset(f"{name}.object" for name in PATCHING) | {
    "mocker.spy", "unittest.mock.patch.multiple",
}  # fmt: skip
SETTING = frozenset({"monkeypatch.setattr", "setattr", "builtins.setattr"})
SAMPLES = frozenset(
    [
        "samples",
        "n_samples",
        "num_samples",
        "samples_min",
        "min_samples",
        "num_questions",
        "n_questions",
        "limit",
        "max_samples",
        "sample_size",
        "num_examples",
        "n_examples",
        "num_prompts",
    ]
)
"""Keyword arguments and keys that say how much an evaluation looks at."""
THRESHOLDS = frozenset(
    [
        "threshold",
        "min_accuracy",
        "accuracy",
        "min_score",
        "score",
        "expected_score",
        "expected_accuracy",
        "minimum",
        "exact_match",
        "accuracy_threshold",
        "score_min",
        "accuracy_min",
        "measured_value",
        "value",
    ]
)
"""Keys of an evaluation's configuration that say what it must reach."""

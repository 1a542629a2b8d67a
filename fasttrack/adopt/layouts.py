# SPDX-License-Identifier: Apache-2.0
"""Known repository layouts: where models, tests and shared code live."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Layout:
    """What `init` must know about a kind of repository.

    Attributes:
        name: value of `--layout`.
        classes: path class to patterns, in order; the first match wins.
        imports: third-party modules that model code there may import.
        tests: pattern of the tests that a new manifest names.
    """

    name: str
    classes: tuple[tuple[str, tuple[str, ...]], ...]
    imports: tuple[str, ...]
    tests: str = "tests/**"


_COMMON_CI = (".github/**", ".gitlab-ci.yml", ".buildkite/**", ".circleci/**", ".ci/**")
_COMMON_DOCS = ("docs/**", "*.md", "*.rst")

GENERIC = Layout(
    name="generic",
    classes=(
        ("ci", _COMMON_CI),
        ("tests", ("tests/**", "test/**")),
        ("docs", _COMMON_DOCS),
    ),
    imports=("numpy", "torch", "triton"),
)
VLLM = Layout(
    name="vllm",
    classes=(
        ("ci", _COMMON_CI),
        ("tests", ("tests/**",)),
        ("docs", _COMMON_DOCS),
        ("model", ("vllm/models/**", "vllm/model_executor/models/**")),
    ),
    imports=("cutlass", "numpy", "torch", "triton"),
)
SGLANG = Layout(
    name="sglang",
    classes=(
        ("ci", _COMMON_CI),
        ("tests", ("test/**",)),
        ("docs", _COMMON_DOCS),
        ("model", ("python/sglang/srt/models/**",)),
    ),
    imports=("cutlass", "numpy", "torch", "triton"),
    tests="test/**",
)

LAYOUTS = {layout.name: layout for layout in (GENERIC, VLLM, SGLANG)}
"""Layout name to layout."""

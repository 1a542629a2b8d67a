# SPDX-License-Identifier: Apache-2.0
"""Path classes depend on what a path is for, not on how a change spells it."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasttrack.policy.classes import PathClasses, fold
from fasttrack.policy.load import load_policy
from fasttrack.policy.model import PathClass
from tests.engine import POLICY, files

POLICY_TEXT = files()[POLICY].replace(
    "paths:\n", 'paths:\n  - {class: model, match: ["engine/models/**", "möbel/**"]}\n', 1
)
CLASSES = PathClasses(load_policy(POLICY_TEXT, POLICY), "manifests")
KNOWN = [
    ("manifests/policy.yaml", PathClass.POLICY),
    ("manifests/keys/lab.pub", PathClass.POLICY),
    (".github/CODEOWNERS", PathClass.POLICY),
    ("CODEOWNERS", PathClass.POLICY),
    ("manifests/foo.yaml", PathClass.MANIFESTS),
    ("manifests/evidence/1.dsse.jsonl", PathClass.EVIDENCE),
    ("manifests/evidence/1.dsse.jsonl.gz", PathClass.EVIDENCE),
    ("Manifests/Evidence/1.DSSE.jsonl.GZ", PathClass.EVIDENCE),
    ("manifests/evidence/1.jsonl.gz", PathClass.SHARED),
    ("manifests/policy-tests/a.yaml", PathClass.SHARED),
    (".github/workflows/ci.yml", PathClass.CI),
    ("engine/models/foo/x.py", PathClass.MODEL),
    ("möbel/x.py", PathClass.MODEL),
    ("tests/test_x.py", PathClass.TESTS),
    ("docs/a.md", PathClass.DOCS),
    ("setup.py", PathClass.SHARED),
    ("", PathClass.SHARED),
]


@pytest.mark.parametrize(("path", "path_class"), KNOWN)
def test_a_path_has_the_class_of_the_first_pattern_that_matches(
    path: str, path_class: PathClass
) -> None:
    assert CLASSES.of(path) is path_class


@given(
    st.sampled_from([path for path, _ in KNOWN]),
    st.sampled_from([str.upper, str.lower, str.title, str.swapcase, str]),
    st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]),
)
def test_case_and_normal_form_change_no_class(path: str, case: object, form: str) -> None:
    spelled = unicodedata.normalize(form, case(path))  # type: ignore[operator]
    assert CLASSES.of(spelled) is CLASSES.of(path)


@given(st.text(min_size=1, max_size=20), st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]))
def test_folding_is_stable(text: str, form: str) -> None:
    assert fold(fold(text)) == fold(text)
    assert fold(unicodedata.normalize(form, text)) == fold(text)


@given(st.lists(st.sampled_from(["a", "b", "engine", "tests"]), min_size=1, max_size=4))
def test_a_rename_within_a_tree_keeps_the_class(segments: list[str]) -> None:
    for prefix in ("engine/models/", "tests/", "manifests/keys/"):
        classes = {CLASSES.of(prefix + "/".join(segments[:n])) for n in range(1, len(segments) + 1)}
        assert len(classes) == 1


def test_no_pattern_of_the_policy_can_class_the_policy_away() -> None:
    text = files()[POLICY].replace("paths:\n", 'paths:\n  - {class: docs, match: ["**"]}\n', 1)
    classes = PathClasses(load_policy(text, POLICY), "manifests")
    assert classes.of("manifests/policy.yaml") is PathClass.POLICY
    assert classes.of("manifests/foo.yaml") is PathClass.MANIFESTS
    assert classes.of("engine/x.py") is PathClass.DOCS

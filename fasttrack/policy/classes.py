# SPDX-License-Identifier: Apache-2.0
"""Which class a path belongs to.

Paths that decide how changes are judged (policy, keys, code owners, manifests, evidence) are
classed here and not by the policy's own patterns, so that no pattern can talk them away.
Comparison folds case and Unicode normal form: on a file system that folds them, `Policy.yaml`
*is* the policy, and its class must not depend on how a change spells it.
"""

import unicodedata
from functools import lru_cache

from fasttrack.globs import ends, matches
from fasttrack.policy.model import PathClass, Policy

CODEOWNERS = ("CODEOWNERS", ".github/CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS")
"""Places where forges look for code owners."""


@lru_cache(maxsize=65536)
def fold(path: str) -> str:
    """The spelling that all case and normal-form variants of a path share."""
    if path.isascii():
        return path.lower()
    once = unicodedata.normalize("NFKC", path).casefold()
    return unicodedata.normalize("NFKC", once).casefold()


class PathClasses:
    """Classifies paths under one policy and one configuration folder."""

    def __init__(self, policy: Policy, config_dir: str) -> None:
        folder = fold(config_dir.rstrip("/"))
        patterns: list[tuple[str, PathClass]] = [
            (f"{folder}/policy.yaml", PathClass.POLICY),
            (f"{folder}/keys/**", PathClass.POLICY),
            *((fold(p), PathClass.POLICY) for p in CODEOWNERS),
            (f"{folder}/evidence/*.dsse.jsonl", PathClass.EVIDENCE),
            (f"{folder}/evidence/*.dsse.jsonl.gz", PathClass.EVIDENCE),
            (f"{folder}/evidence/**", PathClass.SHARED),  # no digest and no budget would see it
            (f"{folder}/*.yaml", PathClass.MANIFESTS),
        ]
        patterns += [
            (fold(pattern), entry.path_class) for entry in policy.paths for pattern in entry.match
        ]
        self._patterns = [(*ends(pattern), pattern, its_class) for pattern, its_class in patterns]
        self._known: dict[str, PathClass] = {}

    def of(self, path: str) -> PathClass:
        """The class of `path`; `shared` when no pattern names it."""
        found = self._known.get(path)
        if found is None:
            found = self._known[path] = self._classify(fold(path))
        return found

    def is_evidence(self, path: str) -> bool:
        """Whether `path` is an evidence file, which no digest and no budget counts."""
        return self.of(path) is PathClass.EVIDENCE

    def _classify(self, folded: str) -> PathClass:
        # A whole tree is classified: most patterns are told by their ends, without a call.
        for prefix, suffix, pattern, path_class in self._patterns:
            if folded.startswith(prefix) and folded.endswith(suffix) and matches(pattern, folded):
                return path_class
        return PathClass.SHARED

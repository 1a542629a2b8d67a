# SPDX-License-Identifier: Apache-2.0
"""FT302: no manifest asks for what the policy does not allow."""

from collections import Counter
from collections.abc import Iterator

from fasttrack.case import Case, in_roots
from fasttrack.change.tree import Tree
from fasttrack.finding import Level
from fasttrack.globs import matches
from fasttrack.manifest.consistency import Fault, package_name
from fasttrack.manifest.model import Manifest
from fasttrack.policy.model import PathClass, Policy
from fasttrack.rules.manifest.edited import ManifestRule
from fasttrack.rules.manifest.version_ranges import in_range

BARS = ("kernel_seeds", "stress_iterations", "eval_samples")
"""Floors of the policy that a manifest's `bars` may raise; higher is stricter for each."""
OWN_CLASSES = frozenset({PathClass.MODEL, PathClass.SHARED, PathClass.GENERATED, PathClass.DOCS})
"""Classes that a root may hold. The others judge code, and a path must not own its judge."""


class WeakerThanPolicy(ManifestRule):
    """Roots, wiring, hardware, bars and toolchains beyond the policy."""

    id = "FT302"
    slug = "weaker-than-policy"
    title = "a manifest is at most stricter than the policy"
    level = Level.BLOCK
    refuses = (
        "In a manifest that the change adds or edits: a root that `roots.allow` does not cover, or "
        "that holds tests, reference, CI, policy, manifests or evidence; wiring that the policy "
        "does not list, or with more lines; hardware outside the vocabulary; a bar below its "
        "floor, or of a name that is no floor; evals with fewer samples or a larger drop than the "
        "floors; a toolchain that contradicts the policy's."
    )
    why = (
        "The policy is what the maintainers agreed to. A manifest that asks for less would let "
        "its author decide instead."
    )
    blind = "What the target branch's manifest already says: the policy's own change shows that."
    fix = "narrow the manifest, or change the policy first, in a change of its own"
    waivable = False

    def faults(self, case: Case, manifest: Manifest, tree: Tree) -> Iterator[Fault]:
        """Compares field by field, in the order of the manifest."""
        yield from _roots(case, manifest, tree)
        yield from _wiring(case.policy, manifest)
        yield from _hardware(case.policy, manifest)
        yield from _evidence(case.policy, manifest)
        yield from _toolchain(case.policy, manifest)


def _roots(case: Case, manifest: Manifest, tree: Tree) -> Iterator[Fault]:
    allowed = case.policy.roots.allow
    for i, root in enumerate(manifest.code.roots):
        if not any(_covers(pattern, root) for pattern in allowed):
            saw = f"the root `{root}`, which the policy's roots do not cover"
            yield Fault(("code", "roots", i), saw, f"roots under {', '.join(allowed)}")
    held: Counter[PathClass] = Counter()
    first: dict[PathClass, str] = {}
    inside = [root + "-" if root.endswith("/") else root for root in manifest.code.roots]
    for path in (*(p for p in tree if in_roots(manifest, p)), *inside):
        path_class = case.path_class(path)
        if path_class not in OWN_CLASSES:
            held[path_class] += 1
            first.setdefault(path_class, path)
    for path_class, path in sorted(first.items()):
        where = path.removesuffix("-") if path in inside else path
        saw = f"roots that hold {path_class.value} paths, such as `{where}`"
        yield Fault(("code", "roots"), saw, "roots with code of the path alone")


def _covers(pattern: str, root: str) -> bool:
    """Whether everything under a root matches a pattern.

    For a directory it takes a pattern that ends in `**`: that stands for at least one segment, so
    when it matches one path just below the root, what is before it has matched the root itself.
    """
    if not root.endswith("/"):
        return matches(pattern, root)
    return pattern.endswith(("/", "/**")) and matches(pattern, root + "-")


def _wiring(policy: Policy, manifest: Manifest) -> Iterator[Fault]:
    allowed = {(w.path, w.symbol): w.max_lines for w in policy.wiring}
    for i, wiring in enumerate(manifest.code.wiring):
        limit = allowed.get((wiring.path, wiring.symbol))
        place = f"`{wiring.symbol}` of `{wiring.path}`"
        if limit is None:
            saw = f"wiring at {place}, which the policy does not list"
            yield Fault(("code", "wiring", i), saw, "wiring that the policy lists")
        elif wiring.max_lines > limit:
            saw = f"{wiring.max_lines} lines at {place}"
            yield Fault(("code", "wiring", i, "max_lines"), saw, f"at most {limit} lines")


def _hardware(policy: Policy, manifest: Manifest) -> Iterator[Fault]:
    for i, region in enumerate(manifest.scope):
        for j, name in enumerate(region.hardware):
            if name not in policy.hardware:
                saw = f"the hardware '{name}' in region '{region.id}'"
                want = f"one of {', '.join(policy.hardware)}"
                yield Fault(("scope", i, "hardware", j), saw, want)


def _evidence(policy: Policy, manifest: Manifest) -> Iterator[Fault]:
    floors = policy.floors
    for name, bar in manifest.evidence.bars.items():
        if name not in BARS:
            want = f"one of {', '.join(BARS)}"
            yield Fault(("evidence", "bars", name), f"the bar '{name}', which is no floor", want)
        elif bar < getattr(floors, name):
            saw = f"the bar '{name}' at {bar:g}"
            want = f"at least {getattr(floors, name)}"
            yield Fault(("evidence", "bars", name), saw, want)
    for i, task in enumerate(manifest.evidence.evals):
        if task.samples_min < floors.eval_samples:
            saw = f"{task.samples_min} samples of '{task.task}'"
            want = f"at least {floors.eval_samples}"
            yield Fault(("evidence", "evals", i, "samples_min"), saw, want)
        if task.drop_max > floors.eval_drop_max:
            saw = f"a drop of {task.drop_max:g} in '{task.task}'"
            want = f"at most {floors.eval_drop_max:g}"
            yield Fault(("evidence", "evals", i, "drop_max"), saw, want)


def _toolchain(policy: Policy, manifest: Manifest) -> Iterator[Fault]:
    exact = {package_name(name): version for name, version in policy.toolchain.exact.items()}
    ranges = {package_name(name): spec for name, spec in policy.toolchain.ranges.items()}
    for package, version in manifest.toolchain.items():
        name = package_name(package)
        saw = f"the toolchain's {package} {version}"
        if exact.get(name, version) != version:
            yield Fault(("toolchain", package), saw, f"{package} {exact[name]}")
        elif name in ranges and not in_range(version, ranges[name]):
            yield Fault(("toolchain", package), saw, f"{package} {ranges[name]}")

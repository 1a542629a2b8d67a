# SPDX-License-Identifier: Apache-2.0
"""FT311: the path's lease is short enough, has begun and has not run out."""

from collections.abc import Iterator

from fasttrack.case import Case
from fasttrack.change.tree import Tree
from fasttrack.finding import Finding, Level
from fasttrack.manifest.consistency import Fault
from fasttrack.manifest.model import Manifest
from fasttrack.rules.manifest.edited import ManifestRule, line_of
from fasttrack.rules.manifest.roots_touched import roots_touched


class Lease(ManifestRule):
    """Leases that are too long, begin later, or have expired while the code goes on changing."""

    id = "FT311"
    slug = "lease"
    title = "the path has a valid lease"
    level = Level.ROUTE
    refuses = (
        "An added or edited manifest whose lease is longer than `lease.max_days` or begins after "
        "the day of the judgement. A change that adds or modifies files in the roots of a path "
        "whose lease has expired; the last day counts as valid, and deleting the files is free."
    )
    why = "Somebody answers for the path until that day. After it, nobody does."
    blind = "Whether the owner still works on it; the decision asks."
    fix = "renew the lease in a change of its own, or remove the path"
    waivable = False

    def check(self, case: Case) -> Iterator[Finding]:
        """New terms first, then the terms under which roots are touched."""
        yield from super().check(case)
        for path, manifest, touched in roots_touched(case):
            lease = manifest.lease
            if lease.expires < case.as_of:
                yield self.finding(
                    path=path,
                    line=line_of(case, path, ("lease", "expires")),
                    saw=f"a lease that expired on {lease.expires}, while `{touched}` changes",
                    want=f"a lease until {case.as_of} or later",
                )

    def faults(self, case: Case, manifest: Manifest, tree: Tree) -> Iterator[Fault]:
        """The length of the lease and its first day."""
        lease, limit = manifest.lease, case.policy.lease.max_days
        days = (lease.expires - lease.granted).days
        if days > limit:
            saw = f"a lease of {days} days, until {lease.expires}"
            yield Fault(("lease", "expires"), saw, f"at most {limit} days")
        if lease.granted > case.as_of:
            saw = f"a lease that begins on {lease.granted}"
            yield Fault(("lease", "granted"), saw, f"{case.as_of} or earlier")

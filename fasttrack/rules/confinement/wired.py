# SPDX-License-Identifier: Apache-2.0
"""Which shared file a change may wire: allowed by the policy and claimed by a manifest."""

from dataclasses import dataclass

from fasttrack.case import Case


@dataclass(frozen=True)
class Allowance:
    """One wired file: the symbols that may change and how many lines that may take.

    Attributes:
        path: repository path.
        symbols: dotted names whose lines may change.
        max_lines: added plus removed lines; the stricter of policy and manifest.
    """

    path: str
    symbols: tuple[str, ...]
    max_lines: int


def allowance(case: Case, path: str) -> Allowance | None:
    """What the change may do to `path`, or None when the path is not wired.

    Both sides must agree: an entry of a manifest without one of the policy allows nothing (and
    FT302 reports it), an entry of the policy that no manifest claims is not in use.
    """
    allowed = {(w.path, w.symbol): w.max_lines for w in case.policy.wiring if w.path == path}
    claimed = {
        (w.path, w.symbol): min(w.max_lines, allowed[w.path, w.symbol])
        for manifest in case.head.valid.values()
        for w in manifest.code.wiring
        if (w.path, w.symbol) in allowed
    }
    if not claimed:
        return None
    symbols = tuple(sorted(symbol for _, symbol in claimed))
    return Allowance(path, symbols, sum(claimed.values()))

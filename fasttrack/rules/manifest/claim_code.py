# SPDX-License-Identifier: Apache-2.0
"""FT310: the gate holds no limit of its own."""

import ast
import warnings
from collections.abc import Iterator
from itertools import pairwise

from fasttrack.case import Case
from fasttrack.change.tree import Entry
from fasttrack.errors import FactUnavailable
from fasttrack.finding import Finding, Level
from fasttrack.rules.base import EntryRule
from fasttrack.rules.confinement.readable import added_text, is_python, text_of
from fasttrack.rules.manifest.edited import first_of

AXES = frozenset(
    [
        "tp",
        "tp_size",
        "tensor_parallel",
        "tensor_parallel_size",
        "dcp",
        "dcp_size",
        "decode_context_parallel",
        "decode_context_parallel_size",
        "requests",
        "num_requests",
        "num_reqs",
        "batch",
        "batch_size",
        "draft",
        "draft_tokens",
        "num_draft_tokens",
        "rows",
        "num_rows",
        "rows_max",
        "context",
        "context_len",
        "context_length",
        "context_max",
        "max_context",
    ]
)
"""Names under which code speaks of a scope axis."""
GATE_LIMIT = 256 * 1024
"""Characters of a gate file that is parsed; a gate that reads the manifest takes a few thousand."""
_ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq, ast.In, ast.NotIn)


class ClaimCode(EntryRule):
    """Comparisons of a scope axis with a number, in gate files."""

    id = "FT310"
    slug = "claim-code"
    title = "limits are in the manifest, not in the gate"
    level = Level.NOTE
    refuses = (
        "Nothing. It notes added lines of a `gate` file in which something named like a scope "
        "axis (`tp`, `rows`, `requests`, `draft_tokens`, `context`, ...) is compared with a "
        "literal number."
    )
    why = "A limit that is written twice drifts apart, and then the documentation admits more."
    blind = (
        "Limits under other names or computed ones. The gate is asked about every witness point "
        "and every point past a bound; that decides."
    )
    fix = "ask `fasttrack.manifest.admission` instead of comparing"

    def entries(self, case: Case) -> Iterator[Entry]:
        """The Python files among the gates."""
        gates = {gate for manifest in case.head.valid.values() for gate in manifest.code.gate}
        for entry in case.entries:
            if entry.path in gates and is_python(entry.path):
                yield entry

    def check_entry(self, case: Case, entry: Entry) -> Iterator[Finding]:
        """One note per gate, at the first such comparison on an added line."""
        added = {line.number: line.text for line in added_text(case, entry)}
        source = text_of(case, entry.new) if added else ""
        found = sorted(c for c in _comparisons(source or "") if c[0] in added)
        if found:
            names = first_of([name for _, name in found])
            yield self.finding(
                path=entry.path,
                line=found[0][0],
                saw=f"{names} compared with a number",
                want="limits that are read from the manifest",
                content="\n".join(added[line].strip() for line, _ in found),
            )


def _comparisons(source: str) -> set[tuple[int, str]]:
    """Lines and axis names of the comparisons with a literal number."""
    return {
        (node.lineno, name)
        for node in ast.walk(_parsed(source))
        if isinstance(node, ast.Compare) and all(isinstance(op, _ORDERED) for op in node.ops)
        for name in _axes_beside_numbers([node.left, *node.comparators])
    }


def _parsed(source: str) -> ast.Module:
    """The gate's syntax tree; an empty one for what is not Python, which FT124 reports."""
    if len(source) > GATE_LIMIT:
        raise FactUnavailable(f"{len(source):,} characters; gates are read up to {GATE_LIMIT:,}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd escapes are not this rule's business
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


def _axes_beside_numbers(operands: list[ast.expr]) -> Iterator[str]:
    for left, right in pairwise(operands):
        for name, other in ((_name(left), right), (_name(right), left)):
            if name in AXES and _is_number(other):
                yield name


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return any(_is_number(item) for item in node.elts)
    value = node.value if isinstance(node, ast.Constant) else None
    return isinstance(value, int | float) and not isinstance(value, bool)

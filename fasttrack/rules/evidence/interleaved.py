# SPDX-License-Identifier: Apache-2.0
"""FT514: both sides come from one interleaved run."""

from fasttrack.finding import Level
from fasttrack.rules.evidence.told import StatementRule


class Interleaved(StatementRule):
    """Comparisons of runs that were not neighbours."""

    id = "FT514"
    slug = "interleaved"
    title = "both sides come from one interleaved run"
    level = Level.ROUTE
    refuses = (
        "A trusted performance statement in which the path, the baseline and their pairs are not "
        "equally many."
    )
    why = (
        "Runs that are not neighbours have seen other clocks and temperatures, and the ratio of "
        "their pairs is of nothing."
    )
    blind = "Whether the runs were in turn: the counts are the runner's word."
    fix = "measure both sides in turn, in one run"
    want = "as many runs of each side as there are pairs"

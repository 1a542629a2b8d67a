# SPDX-License-Identifier: Apache-2.0
"""FT409: no evaluation looks at less or asks for less than before."""

from collections.abc import Iterator

from fasttrack.case import Case
from fasttrack.finding import Finding
from fasttrack.rules.validation.weakening_rule import WeakeningRule
from fasttrack.testmodel.evaluations import lowered_bars
from fasttrack.testmodel.weakening import Kind


class LowerBar(WeakeningRule):
    """Evaluations that look at less or ask for less."""

    id = "FT409"
    slug = "lower-bar"
    title = "evaluations look at and ask for as much as before"
    refuses = (
        "Fewer samples, or a lower score that must be reached, in an evaluation: arguments such as "
        "`samples=` or `num_questions=` and bounds on scores in tests, and the same keys in YAML "
        "and JSON files of the tests whose path speaks of evaluations. What manifests ask for is "
        "the matter of FT302 and FT303."
    )
    why = "A model that answers worse passes an evaluation that asks for less."
    blind = "Numbers under other names, and which samples are chosen."
    fix = "keep the samples and the bar, or send the new ones with their reason for ordinary review"
    kind = Kind.EVALUATION

    def check(self, case: Case) -> Iterator[Finding]:
        """Reports bars in tests, and in the files that configure evaluations."""
        yield from super().check(case)
        for bar in lowered_bars(case):
            yield self.finding(
                path=bar.path,
                saw=f"{bar.key}: {bar.old:g} -> {bar.new:g}",
                want="a number no lower than before",
            )

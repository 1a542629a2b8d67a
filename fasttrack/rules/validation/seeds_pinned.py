# SPDX-License-Identifier: Apache-2.0
"""FT407: seeds are as varied as before."""

from fasttrack.rules.validation.weakening_rule import WeakeningRule
from fasttrack.testmodel.weakening import Kind


class SeedsPinned(WeakeningRule):
    """Seeds that do not vary any more."""

    id = "FT407"
    slug = "seeds-pinned"
    title = "seeds are as varied as before"
    refuses = (
        "A test whose random numbers came from varied or fresh seeds and now come from one fixed "
        "seed. A test that a manifest names is also told when it gets its first seed."
    )
    why = "One seed that passes can always be found; many that pass say something."
    blind = "Seeds that other code sets, and one fixed seed exchanged for another."
    fix = "keep the seeds as parameters, or leave them free and print them"
    kind = Kind.SEED

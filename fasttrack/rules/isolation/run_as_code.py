# SPDX-License-Identifier: Apache-2.0
"""FT207: no text is run as code."""

from fasttrack.finding import Level
from fasttrack.meaning.kinds import Kind
from fasttrack.rules.isolation.effect_rule import EffectRule


class RunAsCode(EffectRule):
    """Effects of kind `code`."""

    id = "FT207"
    slug = "run-as-code"
    title = "no text is run as code"
    level = Level.ROUTE
    refuses = (
        "Governed code that calls `exec`, `eval` or `compile`, times, profiles or debugs text, "
        "unpickles (also `torch.load` with `weights_only=False`, `numpy.load` with "
        "`allow_pickle=True`, YAML with an unsafe loader), makes functions of code objects, runs "
        "files, or imports a module under a name that is not written there. A name "
        "whose written beginning is an own package passes."
    )
    why = "What it runs is nowhere in the change, so neither a reviewer nor a rule can read it."
    blind = (
        "Code that a library runs from text on its own account, such as generated kernels of "
        "Triton."
    )
    fix = "write the code down, and import modules by their names"
    kind = Kind.CODE
    want = "code that is all there to be read"

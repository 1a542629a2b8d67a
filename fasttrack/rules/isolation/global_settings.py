# SPDX-License-Identifier: Apache-2.0
"""FT213: settings of the whole process stay as they are."""

from fasttrack.finding import Level
from fasttrack.meaning.kinds import Kind
from fasttrack.rules.isolation.effect_rule import EffectRule


class GlobalSettings(EffectRule):
    """Effects of kind `settings`."""

    id = "FT213"
    slug = "global-settings"
    title = "settings of the whole process stay as they are"
    level = Level.ROUTE
    refuses = (
        "Governed code that sets what holds for the whole process: `torch.backends`, "
        "configuration of `torch._dynamo` and `torch._inductor`, default dtype and device, number "
        "of threads, random seeds, gradients, the root logger and other modules' loggers. A "
        "`with` block that puts the setting back passes."
    )
    why = "The numbers and the speed of every other model depend on them."
    blind = (
        "Names that are computed; the import probe sees what they do at import. Settings of "
        "packages that are not in the table (FT201 reports them when they are assigned)."
    )
    fix = "use the form with a `with` block, or pass dtype, device and generator to the call"
    kind = Kind.SETTINGS
    want = "code that leaves settings to the engine"

# SPDX-License-Identifier: Apache-2.0
"""FT203: the environment stays as it is."""

from fasttrack.finding import Level
from fasttrack.meaning.kinds import Kind
from fasttrack.rules.isolation.effect_rule import EffectRule


class Environment(EffectRule):
    """Effects of kind `environment`."""

    id = "FT203"
    slug = "environment"
    title = "the environment stays as it is"
    level = Level.ROUTE
    refuses = (
        "Governed code that sets, changes or deletes an environment variable: `os.environ`, "
        "`os.putenv`, `os.unsetenv`, `load_dotenv`. Reading one passes."
    )
    why = (
        "Libraries read the environment at times of their own, so a variable set here switches "
        "something elsewhere."
    )
    blind = (
        "Names that are computed; the import probe sees what they do at import. Variables that a "
        "started program sets for itself (FT209 reports the program)."
    )
    fix = "take the value as an argument or from the configuration"
    kind = Kind.ENVIRONMENT
    want = "code that only reads the environment"

# SPDX-License-Identifier: Apache-2.0
"""FT212: nothing is hooked into the interpreter."""

from fasttrack.finding import Level
from fasttrack.meaning.kinds import Kind
from fasttrack.rules.isolation.effect_rule import EffectRule


class ProcessHooks(EffectRule):
    """Effects of kind `hooks`."""

    id = "FT212"
    slug = "process-hooks"
    title = "nothing is hooked into the interpreter"
    level = Level.ROUTE
    refuses = (
        "Governed code that registers what the interpreter runs later or everywhere: `atexit`, "
        "signal handlers, tracing, audit and exception hooks, threads, filters of warnings that "
        "are not put back, settings of the garbage collector, modes that are entered and not "
        "left."
    )
    why = "It runs at times and in code of other models, long after the call that installed it."
    blind = (
        "Names that are computed; the import probe sees what they do at import. Hooks that a "
        "called library installs, and modes that are entered inside compiled code."
    )
    fix = (
        "do the work where it is called for, inside a `with` block when something must be put back"
    )
    kind = Kind.HOOKS
    want = "code that runs only when it is called"

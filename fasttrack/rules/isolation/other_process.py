# SPDX-License-Identifier: Apache-2.0
"""FT209: no other process is started."""

from fasttrack.finding import Level
from fasttrack.meaning.kinds import Kind
from fasttrack.rules.isolation.effect_rule import EffectRule


class OtherProcess(EffectRule):
    """Effects of kind `process`."""

    id = "FT209"
    slug = "other-process"
    title = "no other process is started"
    level = Level.ROUTE
    refuses = (
        "Governed code that starts, replaces or signals a process: `subprocess`, `os.system`, "
        "`os.fork`, `os.exec...`, `multiprocessing` and its contexts, `loop.subprocess_exec`."
    )
    why = "A program runs with all rights of the server, and outside everything that is measured."
    blind = "Processes that a called library starts, as compilers of kernels do."
    fix = "leave building to the build, and processes to the engine"
    kind = Kind.PROCESS
    want = "code that runs in the process that serves"

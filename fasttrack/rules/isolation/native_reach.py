# SPDX-License-Identifier: Apache-2.0
"""FT208: no memory, frames or garbage collector."""

from fasttrack.finding import Level
from fasttrack.meaning.kinds import Kind
from fasttrack.rules.isolation.effect_rule import EffectRule


class NativeReach(EffectRule):
    """Effects of kind `native`."""

    id = "FT208"
    slug = "native-reach"
    title = "no memory, frames or garbage collector"
    level = Level.ROUTE
    refuses = (
        "Governed code that calls into `ctypes` or `cffi`, loads native libraries, lists objects "
        "through `gc`, or takes other functions' frames or the stack of calls. Types such as "
        "`ctypes.c_int`, taking an "
        "address and reading bytes pass."
    )
    why = "Through these every object of the process can be changed without being named."
    blind = "What extension modules of other packages do when they are called."
    fix = "call the library through its Python package, or wrap it as an operator of PyTorch"
    kind = Kind.NATIVE
    want = "objects that are reached by their names"

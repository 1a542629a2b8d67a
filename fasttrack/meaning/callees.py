# SPDX-License-Identifier: Apache-2.0
"""What a call hands on of its arguments, told by the last part of its name."""

import builtins

from fasttrack.meaning import known

BUILTINS = frozenset(dir(builtins))
SILENT = frozenset(
    {
        "isinstance", "issubclass", "hasattr", "len", "str", "repr", "callable", "print", "bool",
        "int", "float", "any", "all", "sum", "range", "id", "hash", "super", "format", "debug",
        "info", "warning", "error", "join", "startswith", "endswith", "warning_once", "info_once",
        "TypeVar",
    }
)  # fmt: skip
"""Last parts of callees whose result has nothing of what they are handed."""
PASSING = frozenset(
    ["partial", "partialmethod", "wraps", "cache", "lru_cache", "methodcaller", "reduce"]
)
"""Last parts of callees whose result may be called for what they are handed."""
SHAPING = frozenset(["to", "view", "view_as", "reshape", "expand", "expand_as", "type_as", "type"])
"""Methods of what a call gives that only arrays have, or that hand on nothing."""
HOLDING = known.MUTATORS | known.ELEMENTS
"""Methods that keep what they are handed in what they are called on, or hand it out."""

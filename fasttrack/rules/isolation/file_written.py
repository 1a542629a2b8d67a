# SPDX-License-Identifier: Apache-2.0
"""FT211: no file is written."""

from fasttrack.finding import Level
from fasttrack.meaning.kinds import Kind
from fasttrack.rules.isolation.effect_rule import EffectRule


class FileWritten(EffectRule):
    """Effects of kind `files`."""

    id = "FT211"
    slug = "file-written"
    title = "no file is written"
    level = Level.ROUTE
    refuses = (
        "Governed code that writes, renames or removes files: `open` for writing, `pathlib`, "
        "`os`, `shutil`, `gzip` and its like, `tempfile`, handlers of logs, archives that are "
        "unpacked, `tofile`, `torch.save`."
    )
    why = "Files outlive the process and are read by others; a file in the right place is code."
    blind = (
        "Modes and paths that are computed elsewhere, and caches that compilers of kernels keep."
    )
    fix = "return the data, and let the engine or a script write it"
    kind = Kind.FILES
    want = "code that writes no file"

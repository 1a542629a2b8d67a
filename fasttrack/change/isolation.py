# SPDX-License-Identifier: Apache-2.0
"""The surroundings in which git runs, so that nothing but the objects decides what it answers.

The private repository is empty and bare, lies in a temporary directory and borrows the user's
objects as an alternate. No configuration, attributes, grafts, replacement refs, hooks, merge
drivers or index of the user are in reach; new objects land in the temporary directory; an object
that is missing is never fetched.
"""

import os
import re
from collections.abc import Set
from pathlib import Path

# Only these variables of the user reach git, and only in the user's own repository: they can
# carry `safe.directory`. GIT_DIR, GIT_INDEX_FILE and the like (set inside hooks) never do.
_USER_CONFIG = re.compile(
    r"GIT_CONFIG_(GLOBAL|SYSTEM|NOSYSTEM|COUNT|PARAMETERS|KEY_\d+|VALUE_\d+)\Z"
)

_ALWAYS = {
    "LC_ALL": "C",
    "LANGUAGE": "C",
    "GIT_ALLOW_PROTOCOL": "none",  # before git 2.44 the only way to forbid a lazy fetch
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
}

_PRIVATE = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "fasttrack",
    "GIT_AUTHOR_EMAIL": "fasttrack@invalid",
    "GIT_AUTHOR_DATE": "1700000000 +0000",
    "GIT_COMMITTER_NAME": "fasttrack",
    "GIT_COMMITTER_EMAIL": "fasttrack@invalid",
    "GIT_COMMITTER_DATE": "1700000000 +0000",
}

# Every setting that a verdict could depend on, at one value for everybody. The rename limit keeps
# the pairwise comparison of a merge small.
_CONFIG = """\
[core]
\trepositoryformatversion = 1
\tbare = true
\tattributesFile = {devnull}
\tbigFileThreshold = 32m
\tquotePath = false
\tprecomposeUnicode = false
[extensions]
\tobjectFormat = {object_format}
[merge]
\trenames = true
\tdirectoryRenames = false
\trenameLimit = 1000
\tconflictStyle = merge
[diff]
\trenames = false
[apply]
\twhitespace = nowarn
\tignoreWhitespace = no
[gc]
\tauto = 0
"""


def user_environment() -> dict[str, str]:
    """Variables for the two questions that are asked in the user's repository."""
    config = {name: value for name, value in os.environ.items() if _USER_CONFIG.match(name)}
    return _inherited() | config | _ALWAYS


def private_environment(git_dir: Path) -> dict[str, str]:
    """Variables for everything else."""
    return _inherited() | _ALWAYS | _PRIVATE | {"GIT_DIR": str(git_dir)}


def write_repository(
    git_dir: Path, objects_dir: Path, object_format: str, shallow: Set[str]
) -> None:
    """Write the private repository into an empty directory.

    Args:
        git_dir: the empty directory.
        objects_dir: the user's object store.
        object_format: `sha1` or `sha256`.
        shallow: commits whose parents the user's clone left out.
    """
    (git_dir / "objects" / "info").mkdir(parents=True)
    (git_dir / "refs").mkdir()
    (git_dir / "HEAD").write_text("ref: refs/heads/none\n", encoding="ascii")
    text = _CONFIG.format(devnull=os.devnull, object_format=object_format)
    (git_dir / "config").write_text(text, encoding="ascii")
    alternate = _quoted(os.fsencode(objects_dir))
    (git_dir / "objects" / "info" / "alternates").write_bytes(alternate + b"\n")
    if shallow:
        (git_dir / "shallow").write_text("\n".join(sorted(shallow)) + "\n", encoding="ascii")


def _inherited() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}


def _quoted(path: bytes) -> bytes:
    """A path as the alternates file wants it when it may hold quotes or control characters."""
    plain = b"".join(
        bytes([c]) if 32 <= c < 127 and c not in b'"\\' else b"\\%03o" % c for c in path
    )
    return b'"' + plain + b'"'

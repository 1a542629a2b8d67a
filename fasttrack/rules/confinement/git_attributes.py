# SPDX-License-Identifier: Apache-2.0
"""FT107: no file changes how git itself treats other files."""

from fasttrack.finding import Level
from fasttrack.rules.confinement.listed_paths import ListedPaths, Listing


class GitAttributes(ListedPaths):
    """`.gitattributes` and `.lfsconfig`, at any depth."""

    id = "FT107"
    slug = "git-attributes"
    title = "git's attributes stay as they are"
    level = Level.ROUTE
    refuses = "A change to `.gitattributes` or `.lfsconfig` in any folder and any spelling."
    why = (
        "Attributes can hide a file from diffs (`-diff`, `linguist-generated`), change its bytes "
        "at checkout (`filter`, `eol`, `ident`) and choose how it merges; `.lfsconfig` says where "
        "large files come from."
    )
    blind = (
        "`.gitignore`, on purpose: it changes no tracked byte and hides none of them from a diff."
    )
    fix = "send the attributes as a change of their own for ordinary review"
    listing = Listing(names=frozenset({".gitattributes", ".lfsconfig"}))
    noun = "a file that tells git how to treat others"

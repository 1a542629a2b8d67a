# SPDX-License-Identifier: Apache-2.0
"""FT123: no file that says which packages are installed."""

from fasttrack.finding import Level
from fasttrack.rules.confinement.listed_paths import ListedPaths, Listing


class DependencyFiles(ListedPaths):
    """Requirements, constraints and lock files."""

    id = "FT123"
    slug = "dependency-files"
    title = "the installed packages stay as they are"
    level = Level.ROUTE
    refuses = (
        "A change, in any folder, to requirement, constraint and lock files of Python, or to the "
        "package lists of conda, Node, Rust, Go, Nix, Bazel and C++ package managers."
    )
    why = "A package runs its own code at install and import, and no line of it is in the change."
    blind = "Packages that a script installs, and `pyproject.toml` and `setup.py`, which are FT122."
    fix = "send it as a change of its own for ordinary review"
    listing = Listing(
        names=frozenset(
            {
                "pipfile",
                "pylock.toml",
                "environment.yml",
                "environment.yaml",
                "package.json",
                "package-lock.json",
                "npm-shrinkwrap.json",
                "pnpm-lock.yaml",
                ".npmrc",
                "pip.conf",
                "cargo.toml",
                "go.mod",
                "go.sum",
                "flake.nix",
                "module.bazel",
                "workspace",
                "workspace.bazel",
                "conanfile.txt",
                "conanfile.py",
                "vcpkg.json",
            }
        ),
        name_patterns=(
            "*requirements*.txt",
            "*requirements*.in",
            "*constraints*.txt",
            "pylock.*.toml",
            "*.lock",
            "*.lock.json",
            "conda-lock*.y*ml",
        ),
        paths=("**/requirements/*.txt", "**/requirements/*.in"),
    )
    noun = "a file that says which packages are installed"

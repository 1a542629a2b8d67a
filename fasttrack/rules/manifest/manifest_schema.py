# SPDX-License-Identifier: Apache-2.0
"""FT301: every manifest of the change parses, and is where it is read."""

from collections.abc import Iterator, Sequence

from fasttrack.case import Case
from fasttrack.errors import InputError, Problem
from fasttrack.finding import Finding, Level
from fasttrack.policy.model import PathClass
from fasttrack.rules.base import Rule
from fasttrack.rules.manifest.edited import MAX_FINDINGS


class ManifestSchema(Rule):
    """Manifests with problems, and files that only look like manifests."""

    id = "FT301"
    slug = "manifest-schema"
    title = "every manifest parses"
    level = Level.BLOCK
    refuses = (
        "A manifest that the change adds or edits and that does not parse: bad YAML, unknown or "
        "missing keys, wrong types, contradictions between fields; each problem at its line. A "
        "manifest whose name is the policy's in another spelling, or is not read as a manifest "
        "because of its own."
    )
    why = (
        "The runtime, the checker and the documentation read this file. What one of them can not "
        "read, another may read as 'any'."
    )
    blind = "Whether a manifest that parses is true."
    fix = "fasttrack schema manifest; mend the lines named"
    waivable = False

    def check(self, case: Case) -> Iterator[Finding]:
        """Reports the problems of broken manifests, then misspelt names."""
        for file in case.head.files:
            if case.change.entry(file.path) is None:
                continue
            if case.path_class(file.path) is not PathClass.MANIFESTS:
                saw = "a manifest whose name is another spelling of the policy's"
                yield self.finding(path=file.path, saw=saw, want="a name of its own")
            elif isinstance(file.manifest, InputError):
                yield from self._problems(file.path, file.manifest.problems)
        read = {file.path for file in case.head.files}
        for entry in case.entries:
            if entry.path not in read and not entry.deleted and _looks_like_one(case, entry.path):
                yield self.finding(
                    path=entry.path,
                    saw="a manifest under a name that is not read as one",
                    want=f"`{case.config.folder}/NAME.yaml`, spelled exactly so",
                    content=entry.new.oid,
                )

    def _problems(self, path: str, problems: Sequence[Problem]) -> Iterator[Finding]:
        for problem in problems[:MAX_FINDINGS]:
            yield self.finding(
                path=path,
                line=line_in(path, problem.where),
                saw=problem.saw,
                want=problem.want,
                fix=problem.fix,
            )
        if len(problems) > MAX_FINDINGS:
            more = f"{len(problems) - MAX_FINDINGS} more problems"
            yield self.finding(path=path, saw=more, want="none")


def _looks_like_one(case: Case, path: str) -> bool:
    """Whether a path is beside the policy and of class `manifests`, in any spelling."""
    beside = path.count("/") == case.config.folder.count("/") + 1
    return beside and case.path_class(path) is PathClass.MANIFESTS


def line_in(path: str, where: str) -> int:
    """The line of `path:line:column`, 0 when `where` names none."""
    line = where.removeprefix(f"{path}:").split(":", 1)[0]
    return int(line) if line.isdecimal() else 0

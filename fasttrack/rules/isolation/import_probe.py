# SPDX-License-Identifier: Apache-2.0
"""FT230: importing the code in the roots changes nothing else."""

from collections.abc import Iterator

from fasttrack.case import Case
from fasttrack.errors import FactUnavailable
from fasttrack.finding import Finding, Level
from fasttrack.rules.base import Rule


class ImportProbe(Rule):
    """Differences outside the roots after an import in a clean interpreter."""

    id = "FT230"
    slug = "import-probe"
    title = "importing the roots changes nothing outside them"
    level = Level.ROUTE
    refuses = (
        "With `--run-probe`: something that is not in the roots and differs after every module of "
        "the roots was imported, in a way in which it does not at the target branch's tip. "
        "Everything else that these modules import is imported first, so that only their own doing "
        "is seen: attributes, functions (code, defaults, closures), classes, containers and the "
        "instances that modules hold; `sys.modules`, hooks, environment, threads, signals, "
        "settings, operators of torch; and files, sockets, processes and libraries that the import "
        "tried to open. A module that can not be imported is 'could not tell', unless the change "
        "leaves it alone and it could not be imported before."
    )
    why = (
        "Code that alters shared code when it is imported alters it for every model, and the files "
        "of the change do not show where."
    )
    blind = (
        "What happens after the import: at the first call, on a timer, in another process. What "
        "code does that notices the probe: it runs in the same interpreter, so it can behave "
        "there, put things back, alter what is remembered of them, or send a report of its own. "
        "What lies deeper than four steps from a module, inside objects of compiled code, or is "
        "added to something that is called a cache. What needs a GPU or a package that is not "
        "there."
    )
    fix = "keep the effect inside the roots, and pass what shared code needs as an argument"

    def check(self, case: Case) -> Iterator[Finding]:
        """Reports what the probe saw, where it was asked for."""
        probe = case.executed.import_probe
        if probe is None:
            return
        for unknown in probe.unknown:
            yield self.could_not_tell(FactUnavailable(unknown.reason), unknown.path)
        for found in probe.differences:
            yield self.finding(
                path=found.path,
                saw=f"after the import `{found.what}` {found.how}",
                want="an import that leaves everything outside the roots as it was",
            )

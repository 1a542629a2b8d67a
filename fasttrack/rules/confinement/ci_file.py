# SPDX-License-Identifier: Apache-2.0
"""FT118: no file that tells continuous integration what to run."""

from fasttrack.case import Case
from fasttrack.finding import Level
from fasttrack.policy.model import PathClass
from fasttrack.rules.confinement.listed_paths import ListedPaths, Listing


class CiFile(ListedPaths):
    """Workflows, actions and settings of CI services."""

    id = "FT118"
    slug = "ci-file"
    title = "continuous integration stays as it is"
    level = Level.ROUTE
    refuses = (
        "A change to a path of the policy's class `ci`, or to a file that a common CI service, "
        "dependency bot or hook runner reads."
    )
    why = "It decides which tests run on this very change, with which secrets, on which machines."
    blind = "Scripts that a workflow calls, unless the policy puts them in the class `ci`."
    fix = "send it as a change of its own for ordinary review"
    listing = Listing(
        names=frozenset({"action.yml", "action.yaml", "jenkinsfile"}),
        paths=(
            ".github/workflows/**",
            ".github/actions/**",
            ".github/dependabot.y*ml",
            ".gitlab-ci.y*ml",
            ".gitlab/ci/**",
            ".buildkite/**",
            ".circleci/**",
            ".cirrus.y*ml",
            ".travis.y*ml",
            ".azure-pipelines/**",
            "azure-pipelines*.y*ml",
            "bitbucket-pipelines.y*ml",
            "appveyor.y*ml",
            ".appveyor.y*ml",
            ".drone.y*ml",
            ".woodpecker/**",
            ".woodpecker.y*ml",
            ".teamcity/**",
            ".tekton/**",
            ".ci/**",
            ".readthedocs.y*ml",
            ".pre-commit-config.y*ml",
            ".pre-commit-hooks.y*ml",
            ".husky/**",
            "lefthook.y*ml",
            ".mergify.y*ml",
            ".github/mergify.y*ml",
            "renovate.json*",
            ".renovaterc*",
            ".github/renovate.json*",
            "codecov.y*ml",
            ".codecov.y*ml",
            ".github/codecov.y*ml",
        ),
    )
    noun = "a file of continuous integration"

    def concerns(self, case: Case, path: str) -> bool:
        """The policy's class, or the built-in listing."""
        return case.path_class(path) is PathClass.CI or super().concerns(case, path)

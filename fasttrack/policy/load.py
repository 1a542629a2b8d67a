# SPDX-License-Identifier: Apache-2.0
"""Policy text to a checked `Policy`."""

from fasttrack import strict_yaml
from fasttrack.policy.model import Policy


def load_policy(text: bytes | str, source: str) -> Policy:
    """Parses and checks a policy file.

    Args:
        text: the file's content.
        source: how messages name it, such as `origin/main:manifests/policy.yaml`.

    Raises:
        InputError: with every problem of the file, each at its line and column.
    """
    return strict_yaml.validate(strict_yaml.parse(text, source), Policy)

# SPDX-License-Identifier: Apache-2.0
"""Policy text to a checked `Policy`."""

from collections.abc import Callable

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


def with_sigstore_root(policy: Policy, read: Callable[[], bytes | None]) -> Policy:
    """The policy with the root that identities are checked with; the same when it names none.

    Args:
        policy: a policy that was just read.
        read: the content of `ROOT_FILE` in the policy's folder; None when it is not there.
    """
    if policy.trust.sigstore_root is None:
        return policy
    return policy.model_copy(update={"trust": policy.trust.with_root(read())})

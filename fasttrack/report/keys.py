# SPDX-License-Identifier: Apache-2.0
"""Keys for people."""

from collections.abc import Sequence

from fasttrack.evidence.keyfile import CheckedKey
from fasttrack.policy.trust import Key
from fasttrack.report.visible import visible


def policy_lines(key: Key) -> str:
    """What the policy says of a key, as YAML: an entry of `trust.keys`, and where it goes."""
    hardware = ", ".join(f'"{name}"' for name in key.hardware)
    return (
        "trust:\n"
        "  keys:\n"
        f'    - id: "{key.id}"\n'
        f'      public: "{key.public}"\n'
        f"      roles: [{', '.join(key.roles)}]\n"
        f"      kinds: [{', '.join(kind.value for kind in key.kinds)}]\n"
        f'      pool: "{key.pool}"\n'
        f"      hardware: [{hardware}]\n"
        f"      valid_from: {key.valid_from}\n"
        f"      valid_until: {key.valid_until}\n"
    )


def checked_text(checked: Sequence[CheckedKey]) -> str:
    """One line for each key, and one for each thing that is wrong with it."""
    if not checked:
        return "the policy trusts no key, and there is no key file\n"
    lines: list[str] = []
    for key in checked:
        lines += [f"WRONG {visible(f'{key.id}: {fault}')}" for fault in key.faults] or [
            f"ok    {key.id}"
        ]
    return "\n".join(lines) + "\n"

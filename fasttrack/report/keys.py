# SPDX-License-Identifier: Apache-2.0
"""Keys for people."""

from collections.abc import Sequence
from datetime import date

from fasttrack.evidence.keyfile import CheckedKey
from fasttrack.report.visible import visible
from fasttrack.vocabulary import Kind

PROPOSED_DAYS = 365


def policy_lines(key_id: str, public: str, day: date) -> str:
    """What the policy could say of a new key, as YAML.

    Args:
        key_id: its name.
        public: 64 hexadecimal digits.
        day: the first day on which it may sign.
    """
    kinds = ", ".join(kind.value for kind in Kind)
    last = date.fromordinal(min(day.toordinal() + PROPOSED_DAYS, date.max.toordinal()))
    return (
        "trust:\n"
        "  keys:\n"
        f'    - id: "{key_id}"\n'
        f'      public: "{public}"\n'
        "      roles: [runner]\n"
        f"      kinds: [{kinds}]\n"
        f'      pool: "{key_id}"\n'
        "      hardware: [change-me]\n"
        f"      valid_from: {day}\n"
        f"      valid_until: {last}\n"
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

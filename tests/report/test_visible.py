# SPDX-License-Identifier: Apache-2.0
"""What a contributor wrote is shown as it is, or spelled out."""

import pytest

from fasttrack.report.visible import MAX_INDENT, visible, visible_log


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("engine/k3/a.py", "engine/k3/a.py"),
        ("日本 é", "日本 é"),
        ("a\x1b[2Jb", r"a\u{1b}[2Jb"),
        ("a\nfast-track", r"a\u{a}fast-track"),
        ("a\udcffb", r"a\x{ff}b"),
        ("a\u202eb", r"a\u{202e}b"),
        ("a\u00a0b\u3000c", r"a\u{a0}b\u{3000}c"),
        ("e\u0301", r"e\u{301}"),
        ("a\u3164b\u2800c", r"a\u{3164}b\u{2800}c"),
        ("a.py   fast-track", r"a.py \u{20}\u{20}fast-track"),
    ],
)
def test_a_text_is_shown_without_what_could_deceive(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("        assert fade([2]) == [1]", None),
        ("E       assert 0 == 1", None),
        (" " * MAX_INDENT + "x", None),
        (" " * (MAX_INDENT + 1) + "x", " " * MAX_INDENT + r"\u{20}x"),
        ("a" + " " * (MAX_INDENT + 2) + "b", "a" + " " * MAX_INDENT + r"\u{20}\u{20}b"),
        ("    \x1b[2J", r"    \u{1b}[2J"),
    ],
)
def test_a_line_of_a_log_keeps_its_indentation_and_hides_nothing(
    line: str, shown: str | None
) -> None:
    assert visible_log(line) == (line if shown is None else shown)


def test_two_spellings_of_one_letter_are_told_apart() -> None:
    assert visible("caf\u00e9") != visible("cafe\u0301")

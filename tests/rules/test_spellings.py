# SPDX-License-Identifier: Apache-2.0
"""No spelling of a name slips by: properties of the rules that judge paths and characters."""

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasttrack.change.tree import ABSENT, Entry, Side
from fasttrack.policy.classes import fold
from fasttrack.rules import RULES
from fasttrack.rules.confinement.characters import hidden_characters
from fasttrack.rules.confinement.hostile_path import IGNORED_BY_HFS, HostilePath
from fasttrack.rules.confinement.listed_paths import ListedPaths, Listing
from fasttrack.rules.confinement.submodule import SUBMODULE_LIST

LISTINGS = [(r.id, r.listing) for r in RULES if isinstance(r, ListedPaths)]
LISTINGS.append(("FT105", SUBMODULE_LIST))
CASE: Any = None  # the rules under test look at the path alone


def spelled(name: str, upper: list[bool]) -> str:
    flags = iter(upper)
    return "".join(c.upper() if next(flags, False) else c for c in name)


def listed(listing: Listing) -> list[str]:
    patterns = (*listing.name_patterns, *listing.paths)
    return [*listing.names, *listing.folders, *patterns]


@pytest.mark.parametrize(("rule", "listing"), LISTINGS)
def test_a_listing_is_written_in_the_spelling_it_is_compared_in(
    rule: str, listing: Listing
) -> None:
    assert [name for name in listed(listing) if fold(name) != name] == []


@pytest.mark.parametrize(("rule", "listing"), LISTINGS)
@given(data=st.data())
def test_a_listed_name_is_found_in_every_case_and_normal_form(
    rule: str, listing: Listing, data: st.DataObject
) -> None:
    anywhere = {*listing.names, *listing.folders}
    names = listed(listing)
    if not names:
        return
    name = data.draw(st.sampled_from(names))
    path = name.replace("**", "x/y").replace("*", "z").replace("?", "q")
    path = spelled(path, data.draw(st.lists(st.booleans(), max_size=len(path))))
    if name in anywhere:
        path = f"some/folder/{path}"
    if name in listing.folders:
        path += "/deep/file"
    form = data.draw(st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]))
    assert listing.holds(unicodedata.normalize(form, path))


@given(
    upper=st.lists(st.booleans(), max_size=4),
    ignored=st.lists(st.tuples(st.integers(0, 4), st.sampled_from(sorted(IGNORED_BY_HFS)))),
    tail=st.sampled_from(["", ".", " ", ". .", ":stream", "::$INDEX_ALLOCATION"]),
)
def test_gits_folder_is_refused_in_every_disguise(
    upper: list[bool], ignored: list[tuple[int, int]], tail: str
) -> None:
    name = spelled(".git", upper)
    for at, code in ignored:
        name = name[:at] + chr(code) + name[at:]
    entry = Entry(f"a/{name}{tail}/config", ABSENT, Side("100644", "0" * 40))
    assert list(HostilePath().check_entry(CASE, entry))


@given(st.text())
def test_what_is_hidden_is_found_wherever_it_stands(text: str) -> None:
    """Every format or control character is reported, unless it belongs to an emoji."""
    found = list(hidden_characters(text))
    invisible = [
        c
        for c in text
        if unicodedata.category(c) in {"Cc", "Cf"}
        and c not in "\t\n\f\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2"
        and not 0x110BD <= ord(c) <= 0x110CD  # visible signs that surround numbers
        and not 0x13430 <= ord(c) <= 0x1343F  # hieroglyph joiners, which are drawn
        and not 0x1BCA0 <= ord(c) <= 0x1BCA3  # shorthand controls
        and c not in "\u200d\ufe0f"
        and not 0xE0000 <= ord(c) <= 0xE007F
    ]
    assert [c for c in invisible if c not in found] == []

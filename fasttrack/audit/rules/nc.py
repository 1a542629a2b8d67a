# SPDX-License-Identifier: Apache-2.0
"""NC: a load through the cache that nothing keeps coherent, of memory that changes.

Such a load (`LDG...CONSTANT`) tells the compiler that the memory never changes while the kernel
runs: it may then be moved above every wait, and read what was cached before.
"""

from collections.abc import Iterator

from fasttrack.audit.contract import Class
from fasttrack.audit.finding import Finding
from fasttrack.audit.flow.events import Does
from fasttrack.audit.flow.facts import Facts, Place

RULE = "NC"


def check(facts: Facts) -> Iterator[Finding]:
    """Each such load that may touch memory which is not constant."""
    for key, event in facts.those(Does.READ):
        if not event.constant:
            continue
        places = facts.places(event)
        wrong = [
            one for one in places if one.holds is not None and changes(one, facts.contract.pdl)
        ]
        unknown = any(one.holds is None for one in places)
        if wrong or unknown:
            place = wrong[0] if wrong else next(one for one in places if one.holds is None)
            sure = facts.sure(event) or len(wrong) == len(places)
            yield facts.finding(RULE, (key, event), _words(place), place.name, sure)


def changes(place: Place, pdl: bool) -> bool:
    """Whether memory may be written while the kernel runs."""
    if place.holds in (Class.DYNAMIC, Class.METADATA):
        return pdl
    return place.holds is not Class.STATIC


def _words(place: Place) -> tuple[str, str, str]:
    what = f"{place.name} ({place.holds})" if place.holds else "memory of no known parameter"
    return (
        f"a non-coherent load reads {what}",
        "non-coherent loads of static memory only",
        "load it without const __restrict__, __ldg, ld.global.nc and invariant=True",
    )

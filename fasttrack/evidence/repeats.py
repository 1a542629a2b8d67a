# SPDX-License-Identifier: Apache-2.0
"""Lines that a change brings and that add nothing to what is there.

A store has a size up to which it is read. Statements are small and honest ones are signed already,
so that anybody who repeats some of them could fill it. What adds something is a payload that no
other line has, or a good signature under it that none of them bears; names of keys that nobody
knows make no difference.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator

from fasttrack.errors import Problem
from fasttrack.evidence.dsse import Signed
from fasttrack.evidence.known import Known

_FIX = "leave it out; `fasttrack evidence gc --delete` takes away files that others make needless"


def repeats(known: Known) -> Iterator[Problem]:
    """One for each brought line that repeats another one, or one that stays in the target."""
    said: dict[bytes, dict[Signed, str]] = defaultdict(dict)
    for one in known.staying:
        said[one.signed.payload].setdefault(one.signed, one.source)
    signers: dict[bytes, set[str]] = {}
    for one in known.brought.statements:
        earlier = said[one.signed.payload]
        if not earlier or _adds(one.signed, earlier, signers, known):
            earlier[one.signed] = one.source
        else:
            saw = f"what {next(iter(earlier.values()))} says, signed by nobody else"
            yield Problem(one.source, saw, "each statement once", _FIX)


def _adds(
    signed: Signed, earlier: Collection[Signed], signers: dict[bytes, set[str]], known: Known
) -> bool:
    """Whether it has a good signature that no earlier envelope of the same payload has.

    Args:
        signed: what may repeat them.
        earlier: at least one of the same payload.
        signers: of payloads; what is looked up or new goes in.
        known: verifies.
    """
    if signed in earlier:
        return False
    if signed.payload not in signers:
        signers[signed.payload] = {by for one in earlier for by in known.signers(one)}
    new = known.signers(signed) - signers[signed.payload]
    signers[signed.payload] |= new
    return bool(new)

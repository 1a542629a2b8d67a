# SPDX-License-Identifier: Apache-2.0
"""Key rotation: what counts today under one key is signed again by the key that replaces it.

A new key vouches for what the old one vouched for and for nothing else, so both must be of one
pool: else one run would count for two. Statements keep their dates, and the new key must be valid
from before the runs.
"""

from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING

from fasttrack.errors import InputError, Problem
from fasttrack.evidence.accept import accept
from fasttrack.evidence.dsse import read_envelope, sign
from fasttrack.evidence.store import Stored
from fasttrack.policy.trust import Trust

if TYPE_CHECKING:
    from securesystemslib.signer import Signer


def signed_again(
    stored: Sequence[Stored], trust: Trust, old: str, signer: "Signer", day: date
) -> list[bytes]:
    """Envelopes by the new key alone, of every statement that counts and that it lacks.

    Args:
        stored: everything that there is.
        trust: the policy's; it must have both keys.
        old: id of the key that is replaced.
        signer: of the key that replaces it, by its id in the policy.
        day: the UTC day to judge at.

    Raises:
        InputError: not two keys of one pool, nothing to sign, or what the new key can not sign.
    """
    new = str(signer.public_key.keyid)
    _require_one_pool(trust, old, new)
    found = {one.signed.payload: one for one in _counting(stored, trust, old, day)}
    have = {one.signed.payload for one in _counting(stored, trust, new, day)}
    lines = [sign(one.statement, signer) for payload, one in found.items() if payload not in have]
    if not lines:
        saw = _nothing(stored, trust, old, day) or (
            f"{len(found)} statements that count under {old}, all signed by {new} already"
        )
        raise InputError.one("--resign", saw, "something to sign again")
    _require_counting(lines, [found[p] for p in found if p not in have], trust, new, day)
    return lines


def _counting(stored: Sequence[Stored], trust: Trust, key: str, day: date) -> list[Stored]:
    """What counts, and would count by this key's signature without any other."""
    whole, single = accept(stored, trust, day), accept(stored, _only(trust, key), day)
    judged = zip(stored, whole, single, strict=True)
    return [one for one, all_keys, alone in judged if all_keys.accepted and alone.accepted]


def _nothing(stored: Sequence[Stored], trust: Trust, old: str, day: date) -> str:
    """Why nothing counts under a key; empty when something does."""
    if _counting(stored, trust, old, day):
        return ""
    signed = {one.signed for one in stored if old in {s.key_id for s in one.signed.signatures}}
    if not signed:
        return f"none of {len(stored)} statements signed by {old}"
    judged = [
        (one, judgement)
        for keys in (_only(trust, old), trust)
        for one, judgement in zip(stored, accept(stored, keys, day), strict=True)
    ]
    why = next(its.refusals[0].text for one, its in judged if one.signed in signed if its.refusals)
    return f"{len(signed)} statements signed by {old}, none of which counts: {why}"


def _only(trust: Trust, key: str) -> Trust:
    keys = tuple(one for one in trust.keys if one.id == key)
    return trust.model_copy(update={"keys": keys, "identities": (), "thresholds": {}})


def _require_one_pool(trust: Trust, old: str, new: str) -> None:
    pools = {key.id: key.pool for key in trust.keys}
    if old not in pools or old == new:
        others = ", ".join(sorted(pools.keys() - {new})) or "no other key"
        raise InputError.one("--resign", repr(old), f"one of {others}")
    if pools[old] != pools[new]:
        saw = f"{old} of pool {pools[old]} and {new} of pool {pools[new]}"
        raise InputError.one("--resign", saw, "two keys of one pool")


def _require_counting(
    lines: Sequence[bytes], of: Sequence[Stored], trust: Trust, new: str, day: date
) -> None:
    """Signatures that would not count are not made: they would hide that evidence is lost."""
    again = [
        Stored(one.source, read_envelope(line, one.source), one.statement)
        for line, one in zip(lines, of, strict=True)
    ]
    judged = accept(again, _only(trust, new), day)
    fix = f"let the policy give {new} what the old key has, from before the runs on"
    problems = [
        Problem(one.source, result.refusals[0].text, f"a statement that {new} may sign", fix)
        for one, result in zip(of, judged, strict=True)
        if not result.accepted
    ]
    if problems:
        raise InputError(problems)

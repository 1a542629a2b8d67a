# SPDX-License-Identifier: Apache-2.0
"""Whose statements count: a pure judgement under one policy's `Trust`, on one UTC day.

A signature counts when its key may sign this kind for the machine that ran, as a runner, on the day
the run ended, and is not revoked; for the identity that signed a sigstore bundle the same holds.
Then the statement is looked at: how old it is, whether it shows anything, whether its run said
something else of the same cell. Last, statements of one question are counted together: the policy
may want several pools of machines to agree, and each has to have measured: one run that two pools
signed is one witness. A statement that shows nothing counts for no pool.

What this can not see: when a statement was really signed; of a sigstore bundle it sees the end of
the certificate, and a run that ended a day later is none. `run.finished` is the runner's own word,
and the maximum age bounds what a stolen key of the past can still do until it is revoked. Which
policy is asked is the caller's business: the target branch's, or a change could bring its own keys.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from enum import StrEnum

from fasttrack.evidence.statement import Statement
from fasttrack.policy.trust import Signatory, Trust
from fasttrack.vocabulary import Kind

DEFAULT_MAX_AGE_DAYS = 90
DEFAULT_THRESHOLD = 1
CLOCKS_APART = timedelta(days=1)
"""How far a runner's clock may be ahead of an authority's."""


class Reason(StrEnum):
    """Why a signature or a statement does not count; scripts rely on the words."""

    UNKNOWN_KEY = "unknown-key"
    UNKNOWN_IDENTITY = "unknown-identity"
    NOT_VERIFIABLE = "not-verifiable"
    BAD_SIGNATURE = "bad-signature"
    REVOKED_KEY = "revoked-key"
    KEY_NOT_YET_VALID = "key-not-yet-valid"
    EXPIRED_KEY = "expired-key"
    WRONG_ROLE = "wrong-role"
    WRONG_KIND = "wrong-kind"
    WRONG_HARDWARE = "wrong-hardware"
    TOO_OLD = "too-old"
    FROM_THE_FUTURE = "from-the-future"
    SHOWS_NOTHING = "shows-nothing"
    RUN_ID_REUSED = "run-id-reused"
    BELOW_THRESHOLD = "below-threshold"


@dataclass(frozen=True)
class Refusal:
    """One reason and its sentence.

    Attributes:
        reason: the reason.
        text: the sentence.
        revoked: of a revoked key or identity since when; None for every other reason.
    """

    reason: Reason
    text: str
    revoked: date | None = None


@dataclass(frozen=True)
class Signatures:
    """Who signed one envelope.

    Attributes:
        named: ids that its signatures name; of a bundle, the identity that its certificate is of.
        valid: those of the policy's keys and identities whose signature is valid.
        refusals: why a bundle is of nobody, or can not be verified here.
        until: of a bundle, the moment at which its certificate ended: it was signed before that.
    """

    named: tuple[str, ...]
    valid: frozenset[str]
    refusals: tuple[Refusal, ...] = ()
    until: datetime | None = None


@dataclass(frozen=True)
class Judged:
    """A statement, and whether it counts.

    Attributes:
        statement: what was signed.
        accepted: whether it counts as evidence for its cell and inputs.
        pools: pools of the signatures that count, this statement's own.
        refusals: why it, or one of its signatures, does not count.
    """

    statement: Statement
    accepted: bool
    pools: frozenset[str]
    refusals: tuple[Refusal, ...]


Question = tuple[Kind, str, str, str]
"""Kind, cell key, unit digest and tests digest: what statements must share to agree."""


def question(statement: Statement) -> Question:
    """What a statement is an answer to."""
    inputs = statement.predicate.inputs
    return statement.cell.kind, statement.cell.key, inputs.digest, inputs.tests


def judge(
    signed: Sequence[tuple[Statement, Signatures]], trust: Trust, day: date
) -> tuple[Judged, ...]:
    """Which statements count; in the order given.

    Args:
        signed: every statement that there is, from all envelopes: thresholds count over them.
        trust: the policy's.
        day: the UTC day to judge at.
    """
    # (1) Each on its own: whose signatures count.
    single = [_signers(statement, signatures, trust, day) for statement, signatures in signed]
    # (2) What one run said twice, in two ways, counts in neither.
    reused = _reused(single)
    # (3) What it says.
    judged = [
        _with(one, [*_ageing(one.statement, trust, day), *reused.get(place, ())])
        for place, one in enumerate(single)
    ]
    # (4) How many pools agree.
    agreeing: dict[Question, list[Judged]] = defaultdict(list)
    for one in judged:
        if one.accepted:
            agreeing[question(one.statement)].append(one)
    lacking = {asked: shortfall(those, asked[0], trust) for asked, those in agreeing.items()}
    return tuple(
        _counted(one, lacking[question(one.statement)]) if one.accepted else one for one in judged
    )


def shortfall(agreeing: Iterable[Judged], kind: Kind, trust: Trust) -> str:
    """What statements that agree lack of the kind's threshold, in words; empty when they reach it.

    Args:
        agreeing: statements of one question that count.
        kind: what they are of.
        trust: the policy's.
    """
    wanted = trust.thresholds.get(kind, DEFAULT_THRESHOLD)
    runs: dict[str, set[str]] = defaultdict(set)
    for one in agreeing:
        for pool in one.pools:
            runs[pool].add(one.statement.predicate.run.run)
    names = ", ".join(sorted(runs))
    if len(runs) < wanted:
        return f"{len(runs)} of {wanted} pools say so: {names}"
    if (witnesses := _witnesses(runs)) < wanted:
        return f"{witnesses} of {wanted} pools say so of a run of their own: {names}"
    return ""


def _witnesses(runs: Mapping[str, Set[str]]) -> int:
    """How many pools can have a run each that is no other's: a largest matching of the two."""
    taken: dict[str, str] = {}

    def placed(pool: str, tried: set[str]) -> bool:
        for run in runs[pool] - tried:
            tried.add(run)
            if run not in taken or placed(taken[run], tried):
                taken[run] = pool
                return True
        return False

    return sum(placed(pool, set()) for pool in runs)


def key_refusals(key: Signatory, day: date, run_day: date) -> Iterator[Refusal]:
    """Why a key's or identity's signature does not count, whatever it signed.

    Args:
        key: the policy's key or identity.
        day: the UTC day to judge at.
        run_day: the UTC day on which the run ended.
    """
    if key.revoked is not None and key.revoked <= day:
        text = f"{key} is revoked from {key.revoked} on, with all that it signed"
        yield Refusal(Reason.REVOKED_KEY, text, key.revoked)
    if run_day < key.valid_from:
        text = f"{key} is valid from {key.valid_from}, and this is of {run_day}"
        yield Refusal(Reason.KEY_NOT_YET_VALID, text)
    if run_day > key.valid_until:
        text = f"{key} was valid until {key.valid_until}, and this is of {run_day}"
        yield Refusal(Reason.EXPIRED_KEY, text)


def _signers(statement: Statement, signatures: Signatures, trust: Trust, day: date) -> Judged:
    keys: dict[str, Signatory] = {one.id: one for one in (*trust.keys, *trust.identities)}
    pools: set[str] = set()
    refusals = [*signatures.refusals]
    for key_id in signatures.named:
        key = keys.get(key_id)
        if key is None:
            text = f"key {key_id} is not one of the policy's"
            refusals.append(Refusal(Reason.UNKNOWN_KEY, text))
        elif key_id not in signatures.valid:
            text = f"the signature is not what {key} makes of this statement"
            refusals.append(Refusal(Reason.BAD_SIGNATURE, text))
        elif found := [*_key_faults(key, statement, day), *_time_faults(statement, signatures)]:
            refusals += found
        else:
            pools.add(key.pool)
    return Judged(statement, bool(pools), frozenset(pools), tuple(refusals))


def _key_faults(key: Signatory, statement: Statement, day: date) -> Iterator[Refusal]:
    predicate, kind = statement.predicate, statement.cell.kind
    yield from key_refusals(key, day, predicate.run.finished.date())
    if "runner" not in key.roles:
        text = f"{key} is of a {' and '.join(key.roles)}, not of a runner"
        yield Refusal(Reason.WRONG_ROLE, text)
    if kind not in key.kinds:
        text = f"{key} may sign {', '.join(key.kinds)}, not {kind}"
        yield Refusal(Reason.WRONG_KIND, text)
    hardware = predicate.machine.hardware
    if hardware not in key.hardware:
        text = f"{key} speaks for {', '.join(key.hardware)}, and this ran on {hardware}"
        yield Refusal(Reason.WRONG_HARDWARE, text)


def _time_faults(statement: Statement, signatures: Signatures) -> Iterator[Refusal]:
    """Nobody signs what a run shows long before the run has ended."""
    finished, until = statement.predicate.run.finished, signatures.until
    if until is not None and finished - until > CLOCKS_APART:
        text = f"the run ended on {finished.date()}, and it was signed by {until.date()}"
        yield Refusal(Reason.FROM_THE_FUTURE, text)


def _ageing(statement: Statement, trust: Trust, day: date) -> Iterator[Refusal]:
    """Faults of a statement itself, whoever signed it."""
    finished, kind = statement.predicate.run.finished.date(), statement.cell.kind
    if finished > day:
        text = f"the run ended on {finished}, after {day}"
        yield Refusal(Reason.FROM_THE_FUTURE, text)
    age, limit = (day - finished).days, trust.max_age_days.get(kind, DEFAULT_MAX_AGE_DAYS)
    if age > limit:
        text = f"the run ended {age} days ago, and {kind} evidence counts for {limit}"
        yield Refusal(Reason.TOO_OLD, text)
    for problem in statement.problems():
        yield Refusal(Reason.SHOWS_NOTHING, problem)


def _reused(single: Sequence[Judged]) -> dict[int, list[Refusal]]:
    """Places of statements whose run said something else of the same cell, trusted both times.

    Statements without a trusted signature are left out: anybody could take a run's id and void
    what it showed.
    """
    said: dict[tuple[str, Kind, str], list[int]] = defaultdict(list)
    for place, one in enumerate(single):
        if one.accepted:
            cell = one.statement.cell
            said[one.statement.predicate.run.run, cell.kind, cell.key].append(place)
    reused: dict[int, list[Refusal]] = {}
    for (run, _, _), places in said.items():
        if any(single[place].statement != single[places[0]].statement for place in places):
            text = f"run {run} said two different things of this cell"
            reused |= {place: [Refusal(Reason.RUN_ID_REUSED, text)] for place in places}
    return reused


def _with(one: Judged, refusals: list[Refusal]) -> Judged:
    accepted = one.accepted and not refusals
    return replace(one, accepted=accepted, refusals=(*one.refusals, *refusals))


def _counted(one: Judged, lacking: str) -> Judged:
    return _with(one, [Refusal(Reason.BELOW_THRESHOLD, lacking)]) if lacking else one

# SPDX-License-Identifier: Apache-2.0
"""What the proof of a kernel rests on because its contract says so, and what the contract demands.

A contract that promises more or demands less proves more kernels. Each promise and each demand is
a sentence, so that two contracts can be compared: a name that is new to the later one is a new
parameter, of which nothing was said before.
"""

from collections.abc import Iterator
from math import prod

from fasttrack.audit.contract import Class, Contract
from fasttrack.audit.lint import Named, named

_STRICT = (Class.DYNAMIC, Class.METADATA)
"""Classes that promise nothing: the memory is read after the wait."""
_CHANGES = (*_STRICT, Class.MAILBOX, Class.FLAG)

Sentence = tuple[str, str]
"""The parameter that it is about, or nothing; and the sentence."""


def loosened(base: Contract, head: Contract) -> Iterator[str]:
    """What the later of two contracts promises anew or demands no longer, in sentences."""
    known = {"", *(one.name for one in named(base))}
    before = set(_promises(base))
    for sentence in _promises(head):
        if sentence not in before and sentence[0] in known:
            yield f"says now that {sentence[1]}"
    after = set(_demands(head))
    for sentence in _demands(base):
        if sentence not in after:
            yield f"says no longer that {sentence[1]}"
    if prod(head.block) < prod(base.block):
        yield f"speaks of {prod(head.block)} threads, no longer of {prod(base.block)}"


def _promises(contract: Contract) -> Iterator[Sentence]:
    if not contract.pdl:
        yield "", "it is not launched early"
    if contract.early_trigger is not None:
        yield "", f"an early trigger is safe: {contract.early_trigger}"
    for barrier in contract.barriers:
        yield "", f"{barrier.threads} threads take part in barrier {barrier.id}"
    for other in contract.neighbours:
        if other.waits:
            yield "", f"{other.name} ({other.distance}) waits"
    for one in named(contract):
        for sentence in _of(one):
            yield one.name, f"{one.name} {sentence}"


def _of(one: Named) -> Iterator[str]:
    """What is promised of a parameter."""
    if one.holds not in _STRICT:
        yield f"is {one.holds}"
    if one.pointees is not None and one.pointees not in _STRICT:
        yield f"has pointers to {one.pointees} memory"
    if one.sentinel:
        yield "shows by its values that it is full"
    if one.after is not None:
        yield f"may be read behind {one.after}"
    if Class.FLAG in (one.holds, one.pointees) and one.scope == "gpu":
        yield "is for this GPU alone"
    if one.array is not None:
        yield f"is of several flags, by which threads go `{one.array}`"
    if one.announces is not None:
        names = ("nothing",) if one.announces == "nothing" else one.announces
        yield f"announces no more than {', '.join(sorted(names))}"


def _demands(contract: Contract) -> Iterator[Sentence]:
    for one in named(contract):
        if one.holds in _CHANGES:
            yield one.name, f"the memory of {one.name} changes"
        if one.pointees in _CHANGES:
            yield one.name, f"what {one.name} points to changes"
        for number in range(2, one.rounds + 1):
            yield one.name, f"{one.name} is read anew after {number} waits or acquires"
    for verb, names in (("reads", contract.reads), ("writes", contract.writes)):
        yield from ((name, f"it {verb} {name}") for name in names)
    for other in contract.neighbours:
        for verb, names in (("reads", other.reads), ("writes", other.writes)):
            yield from (("", f"{other.name} ({other.distance}) {verb} {name}") for name in names)

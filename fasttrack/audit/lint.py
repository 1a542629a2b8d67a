# SPDX-License-Identifier: Apache-2.0
"""Holds a contract against itself and against its kernel.

An audit is worth what its contract is worth: an entry that is unknown, unused, contradictory or
left to a default is an error, never a guess.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from math import prod

from fasttrack import strict_yaml
from fasttrack.audit.contract import Class, Contract, Member, Parameter
from fasttrack.audit.fit import Fault, listed, matches, misfits
from fasttrack.audit.program import Kernel
from fasttrack.errors import InputError, Problem

BLOCK = 1024
"""Most threads of a block."""

Named = Parameter | Member


def load_contract(text: str | bytes, source: str) -> Contract:
    """Parses a contract and holds it against itself.

    Args:
        text: YAML.
        source: how messages name it.

    Raises:
        InputError: with every problem found.
    """
    document = strict_yaml.parse(text, source)
    contract = strict_yaml.validate(document, Contract)
    check_contract(contract, source)
    return contract


def check_contract(contract: Contract, source: str) -> None:
    """Raises InputError with everything in a contract that contradicts itself."""
    found = [
        Problem(f"{source}: {where}", saw, want)
        for where, saw, want in (
            *_names(contract), *_classes(contract), *_flags(contract), *_tables(contract),
            *_structs(contract),
            *_buffers(contract), *_launch(contract), *_neighbours(contract),
        )
    ]  # fmt: skip
    if found:
        raise InputError(found)


def check_against(contract: Contract, kernel: Kernel, source: str) -> None:
    """Raises InputError with every way in which a contract does not fit its kernel."""
    found = [
        Problem(f"{source}: {where}", saw, want) for where, saw, want in misfits(contract, kernel)
    ]
    if found:
        raise InputError(found)


def speaks_of(contract: Contract, kernel: Kernel) -> bool:
    """Whether a contract is this kernel's."""
    return matches(kernel.name, contract.kernel)


def named(contract: Contract) -> Iterator[Named]:
    """Parameters, with the members of each struct in its place."""
    for parameter in contract.parameters:
        if parameter.holds == "struct":
            yield from parameter.fields
        else:
            yield parameter


def _names(contract: Contract) -> Iterator[Fault]:
    counts = Counter([one.name for one in named(contract)])
    for name, times in counts.items():
        if times > 1:
            yield "parameters", f"{name!r} {times} times", "a name for each"


def is_(one: Named, wanted: Class) -> bool:
    """Whether an entry speaks of memory of a class, its own or what its pointers point to."""
    return wanted in (one.holds, one.pointees)


def _classes(contract: Contract) -> Iterator[Fault]:
    flags = {one.name for one in named(contract) if is_(one, Class.FLAG)}
    for one in named(contract):
        where, stated = f"parameters: {one.name}", one.model_fields_set
        mailbox, flag = is_(one, Class.MAILBOX), is_(one, Class.FLAG)
        if mailbox and (one.after is None) is not one.sentinel:
            what = "both `after` and" if one.sentinel else "neither `after` nor"
            yield where, f"{what} `sentinel`", "one of them: how a reader knows that it is full"
        if one.sentinel and not mailbox:
            yield where, "`sentinel`", "it for mailboxes alone"
        if one.after is not None and not mailbox:
            yield where, "`after`", "it for mailboxes alone; all else is read after the wait"
        if one.after is not None and one.after not in flags:
            yield f"{where}: after", repr(one.after), f"one of the flags ({listed(flags)})"
        if flag and "scope" not in stated:
            yield where, "a flag without `scope`", "`gpu` or `sys`: who must see it in order"
        if not flag and "scope" in stated:
            yield where, f"`scope` of {one.holds}", "it for flags alone"
        if mailbox and one.after is not None and "rounds" not in stated:
            want = "after how many acquires it is read anew, 1 if it is read once"
            yield where, "a mailbox without `rounds`", want
        if "rounds" in stated and not _comes_in_rounds(contract, one):
            want = "them for memory that is read after a wait or an acquired flag"
            yield where, f"`rounds` of {_kind(contract, one)}", want


def _flags(contract: Contract) -> Iterator[Fault]:
    """What is said of flags: which of several, and what they announce."""
    flags = {one.name for one in named(contract) if is_(one, Class.FLAG)}
    stored = [name for name in contract.writes if name not in flags]
    for one in named(contract):
        where, stated = f"parameters: {one.name}", one.model_fields_set & {"array", "announces"}
        if one.name not in flags:
            for key in sorted(stated):
                yield where, f"`{key}` of {one.holds}", "it for flags alone"
            continue
        if one.pointees is Class.FLAG and one.array is None:
            yield where, "a table of flags without `array`", "`same`, `own` or `all`"
        is_set = one.name in contract.writes
        if one.announces is None and is_set and len(stored) > 1:
            want = f"which of {listed(stored)} it announces, or `nothing` if it is only set back"
            yield where, "a flag that is set without `announces`", want
        if one.announces is not None and not is_set:
            yield where, "`announces` of a flag not in `writes`", "it for flags that are set"
        for name in () if one.announces in (None, "nothing") else one.announces:
            if name not in stored:
                yield f"{where}: announces", repr(name), f"what is stored ({listed(stored)})"


def _comes_in_rounds(contract: Contract, one: Named) -> bool:
    if is_(one, Class.MAILBOX):
        return one.after is not None
    return contract.pdl and (is_(one, Class.DYNAMIC) or is_(one, Class.METADATA))


def _kind(contract: Contract, one: Named) -> str:
    if one.sentinel:
        return "a mailbox with a sentinel"
    changes = is_(one, Class.DYNAMIC) or is_(one, Class.METADATA)
    return f"{one.holds} without `pdl`" if changes and not contract.pdl else str(one.holds)


def _tables(contract: Contract) -> Iterator[Fault]:
    for one in named(contract):
        where = f"parameters: {one.name}"
        descriptor = isinstance(one, Parameter) and one.descriptor
        if one.pointees is not None and one.holds is Class.SCALAR:
            yield where, "a number with `pointees`", "them for tables of pointers alone"
        if one.pointees is Class.SCALAR:
            yield where, "pointers to a number", "no `pointees`, or the class of the memory there"
        if descriptor and one.holds is Class.SCALAR:
            yield where, "a descriptor of a number", "the class of the tensor's memory"
        if descriptor and one.pointees is not None:
            yield where, "a descriptor with `pointees`", "one of them"


def _structs(contract: Contract) -> Iterator[Fault]:
    for one in contract.parameters:
        where = f"parameters: {one.name}"
        if (one.holds == "struct") is not bool(one.fields):
            yield where, f"{one.holds} with {len(one.fields)} fields", "`struct` with its fields"
        more = one.descriptor or one.after or one.pointees or one.array
        if one.holds == "struct" and (more or one.announces is not None):
            yield where, "more than `fields`", "what each member is, at the member"
        members = sorted(one.fields, key=lambda member: member.offset)
        for first, second in pairwise(members):
            if first.offset + first.size > second.offset:
                yield where, f"{first.name!r} and {second.name!r} overlap", "members apart"


def _buffers(contract: Contract) -> Iterator[Fault]:
    known = {one.name: one for one in named(contract) if one.holds is not Class.SCALAR}
    for key, names in (("reads", contract.reads), ("writes", contract.writes)):
        for name in names:
            if name not in known:
                yield key, repr(name), f"a pointer of this kernel ({listed(known)})"
    for name in contract.writes:
        if name in known and known[name].holds is Class.STATIC:
            yield "writes", f"{name!r}, which is static", "another class: this kernel writes it"
    for one in known.values():
        yield from _use(contract, one)
        if one.after in known and one.after not in contract.reads:
            where = f"parameters: {one.name}"
            yield where, f"its flag {one.after!r} not in `reads`", "it there: it is acquired"


def _use(contract: Contract, one: Named) -> Iterator[Fault]:
    where, is_read = f"parameters: {one.name}", one.name in contract.reads
    if not is_read and one.name not in contract.writes:
        yield where, "neither read nor written", "`reads` or `writes` to name it"
    elif not is_read and one.holds in (Class.DYNAMIC, Class.METADATA, Class.MAILBOX):
        want = "it there, or `out` if this kernel alone writes it"
        yield where, f"{one.holds}, and not in `reads`", want
    if one.holds is Class.OUT and one.name not in contract.writes:
        yield where, "out, and not in `writes`", "it there"
    if one.holds is Class.OUT and is_read:
        yield where, "out, and in `reads`", "`dynamic`: it is read, too"


def _launch(contract: Contract) -> Iterator[Fault]:
    threads = prod(contract.block)
    if min(contract.block) < 1 or threads > BLOCK:
        yield "block", f"{threads} threads", f"1 to {BLOCK}"
    for barrier in contract.barriers:
        if barrier.threads > threads or barrier.threads % 32:
            yield (
                f"barriers: {barrier.id}",
                f"{barrier.threads} threads",
                "whole warps of the block",
            )
    ids = Counter(barrier.id for barrier in contract.barriers)
    for one, times in ids.items():
        if times > 1:
            yield "barriers", f"{one} {times} times", "one entry for each"
    if contract.early_trigger is not None and not contract.early_trigger.strip():
        yield "early_trigger", "no text", "the reason why an early trigger is safe"


def _neighbours(contract: Contract) -> Iterator[Fault]:
    known = {one.name: one.holds for one in named(contract) if one.holds != Class.SCALAR}
    distances = Counter(one.distance for one in contract.neighbours)
    for distance, times in distances.items():
        if times > 1:
            yield "neighbours", f"{distance} {times} times", "one launch at each distance"
    for one in contract.neighbours:
        where = f"neighbours: {one.name}"
        if abs(one.distance) == 2 and one.distance // 2 not in distances:
            yield where, f"no neighbour at {one.distance // 2}", "it: whether it waits matters"
        if abs(one.distance) == 2 and not one.reads and not one.writes:
            yield where, "neither reads nor writes", "a buffer of this kernel, or no entry"
        for name in (*one.reads, *one.writes):
            if name not in known:
                yield where, repr(name), f"buffers of this kernel ({listed(known)})"
        for name in one.writes:
            if known.get(name) is Class.STATIC:
                yield where, f"it writes {name!r}, which is static", "another class: it changes"

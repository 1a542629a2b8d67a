# SPDX-License-Identifier: Apache-2.0
"""One call under judgement: what the memory holds before it, and what came of it.

1. Content is drawn, and a layout. Whatever an operand does not define, every output and every
   workspace hold poison: NaN in one call, 2^100 in the next.
2. The image is written and the candidate runs.
3. The image is read, and read again: who is still at work then is late.
4. Only now is the right answer computed, in this process.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from kimi_k3.decode.kernels.shapes import Role
from kimi_k3.validation.case import Case, Content, Expected
from kimi_k3.validation.judge import Fault, Judged, judged, strayed
from kimi_k3.validation.memory import Layout, blank, layouts
from kimi_k3.validation.operators import OPERATORS
from kimi_k3.validation.session import Call, Session, Told

POISONS = (float("nan"), 2.0**100)
POISON_WORD = 0x7FF7_7FF7
"""What integers hold that nothing defines."""


@dataclass(frozen=True)
class Prepared:
    """Calls that share a memory, before they are made.

    Attributes:
        image: what the memory holds.
        cases: what each call is about.
        contents: what each reads.
        layouts: where each has its operands.
    """

    image: torch.Tensor
    cases: Sequence[Case]
    contents: Sequence[Content]
    layouts: Sequence[Layout]

    def call(self, which: int) -> Call:
        """One of the calls."""
        case = self.cases[which]
        return Call(self.layouts[which], case.rows, case.scalars)

    def calls(self) -> list[Call]:
        """All of them."""
        return [self.call(i) for i in range(len(self.cases))]


@dataclass(frozen=True)
class Seen:
    """What came of a call.

    Attributes:
        case: what it was about.
        told: what the candidate's process said.
        judged: what its bytes say.
        late: whether bytes still changed after it said that it was done.
    """

    case: Case
    told: Told
    judged: Judged
    late: bool

    @property
    def faults(self) -> tuple[str, ...]:
        """All that is wrong with the bytes, and an error that the candidate raised."""
        found = [f"{fault} ({self.case})" for fault in self.judged.faults]
        if self.told.error:
            found.insert(0, f"{self.told.error} ({self.case})")
        return tuple(found)


def prepared(
    cases: Sequence[Case],
    size: int,
    rng: np.random.Generator,
    poison: float,
    *,
    at: Sequence[Layout] | None = None,
    device: str = "cpu",
    contents: Sequence[Content] = (),
) -> Prepared:
    """The memory before some calls of one candidate.

    Args:
        cases: what each is about.
        size: bytes of the memory.
        rng: draws addresses and what lies between operands.
        poison: what undefined values hold.
        at: where the operands are, for calls at the addresses of earlier ones.
        device: where the image is made, and everything that it is compared with.
        contents: what the calls read, in place of what their cases draw.
    """
    image = blank(size, rng, device)
    places = at or layouts(cases[0].candidate.memory, size, rng, len(cases))
    read = list(contents)
    if not read:
        with torch.device(device):
            read = [OPERATORS[case.candidate.operator].content(case) for case in cases]
    for content, layout in zip(read, places, strict=True):
        for name, place in layout.items():
            view = place.view(image)
            value = content.get(name)
            if value is None:
                view.fill_(poison if view.is_floating_point() else POISON_WORD)
            elif view.is_floating_point():
                view.copy_(torch.where(value.isnan(), torch.full_like(value, poison), value))
            else:
                view.copy_(value)
    return Prepared(image, cases, read, places)


def expected_of(ready: Prepared, which: int) -> dict[str, Expected]:
    """The right answer of one of the calls."""
    case = ready.cases[which]
    with torch.device(ready.image.device):
        return OPERATORS[case.candidate.operator].expected(case, ready.contents[which])


def stock_of(ready: Prepared, which: int) -> dict[str, torch.Tensor]:
    """What the stock path answers to one of the calls."""
    case = ready.cases[which]
    with torch.device(ready.image.device):
        return OPERATORS[case.candidate.operator].stock(case, ready.contents[which])


def verdict(ready: Prepared, which: int, after: torch.Tensor) -> Judged:
    """What the bytes after a call say of it."""
    return judged(ready.layouts[which], ready.image, after, expected_of(ready, which))


def red_zones(ready: Prepared, after: torch.Tensor) -> tuple[Fault, ...]:
    """What the bytes between operands say."""
    places = [place for layout in ready.layouts for place in layout.values()]
    return strayed(ready.image, after, places)


def tried(session: Session, ready: Prepared, *, trace: bool = False) -> Seen:
    """Makes the only call that is prepared, and judges it.

    Args:
        session: the candidate's process.
        ready: its memory.
        trace: have a profiler look, on a device.
    """
    session.write(ready.image)
    told = session.call(ready.call(0), trace=trace)
    return _seen(session, ready, told)


def replayed(session: Session, ready: Prepared) -> Seen:
    """Replays what was captured for this layout, and judges it."""
    session.write(ready.image)
    told = session.replay()
    return _seen(session, ready, told)


def _seen(session: Session, ready: Prepared, told: Told) -> Seen:
    after = session.read()
    found = verdict(ready, 0, after)
    found = Judged(
        (*found.faults, *red_zones(ready, after)), found.worst, found.answers, found.bits
    )
    late = not torch.equal(after, session.read())
    return Seen(ready.cases[0], told, found, late)


def untouched(session: Session, ready: Prepared) -> tuple[bool, Told]:
    """Whether a call without its launches leaves every output as it was."""
    session.write(ready.image)
    told = session.call(ready.call(0), ghost=True)
    after = session.read()
    outputs = [
        place
        for layout in ready.layouts
        for place in layout.values()
        if place.operand.role in {Role.OUT, Role.INOUT}
    ]
    same = all(torch.equal(p.bits(ready.image), p.bits(after)) for p in outputs)
    return same, told

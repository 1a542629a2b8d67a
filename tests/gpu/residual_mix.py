# SPDX-License-Identifier: Apache-2.0
"""One launch of a residual mix: inputs, red zones, poisoned outputs, and what must come out."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import torch

from fasttrack.manifest.variants import Variant
from kimi_k3.decode.comm.interface import Site
from kimi_k3.decode.kernels.attn_res.shape import MOST_ROWS, Form
from kimi_k3.decode.kernels.build import parameters_of
from kimi_k3.decode.kernels.catalogue import candidate, table
from kimi_k3.decode.kernels.launch import Kernel
from kimi_k3.decode.kernels.wait import HEALTH_WORDS, PARITIES, SENTINEL
from tests.gpu.oracle import DEVICE, Inputs, assert_within, wide
from tests.gpu.test_stock_mix import exact_mix

CACHE = Path(__file__).resolve().parents[2] / ".gpu" / "kernels"
"""Where cubins travel to a machine that has no compiler."""
CANARY = 0x5A5A
"""BF16 bits between and behind rows, which nobody may write."""
LIMIT_NS = 50_000_000
RANK, PER_STEP = 3, 93


def variants(arch: str) -> list[Variant]:
    """The variants of one architecture whose code differs: tensor parallelism does not matter."""
    return [one for one in table("attn_res").variants if (one.arch, one.tp) == (arch, 8)]


def variant(name: str, rows: int, arch: str = "sm_90a") -> Variant:
    """The variant of a form that serves some rows."""
    kernel = f"attn-res-{name}"
    (found,) = (
        one for one in variants(arch) if one.kernel == kernel and one.rows[0] <= rows <= one.rows[1]
    )
    return found


@cache
def loaded(identity: str) -> Kernel:
    """A variant's kernel on this device."""
    (found,) = (one for one in table("attn_res").variants if one.id == identity)
    return Kernel(candidate("attn_res", found, CACHE))


def bits(x: torch.Tensor) -> torch.Tensor:
    """The same memory as integers, so that every NaN is itself."""
    whole = {2: torch.int16, 4: torch.int32, 8: torch.int64}
    return x.view(whole[x.dtype.itemsize])


def canaries(*shape: int) -> torch.Tensor:
    """BF16 that nobody may change."""
    return torch.full(shape, CANARY, dtype=torch.int16, device=DEVICE).view(torch.bfloat16)


@dataclass
class Call:
    """A launch of a variant with inputs of its own."""

    variant: Variant
    rows: int
    saved: int
    poison: float
    inputs: Inputs
    parity: int = 0
    values: dict[str, torch.Tensor | int] = field(default_factory=dict)
    before: dict[str, torch.Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        parameters = parameters_of(self.variant)
        self.form, self.hidden = Form.of(parameters), int(parameters["hidden"])
        self.values |= dict(self._arguments())
        self.keep()

    def keep(self) -> None:
        """Notes what every tensor holds now."""
        tensors = self.values.items()
        self.before = {n: t.clone() for n, t in tensors if isinstance(t, torch.Tensor)}

    def refill(self) -> None:
        """Other contents at the same addresses, outputs poisoned anew."""
        for name, value in self._arguments():
            held = self.values[name]
            if isinstance(held, torch.Tensor):
                assert isinstance(value, torch.Tensor)
                held.copy_(value)
        self.keep()

    def launch(self, *, pdl: bool = False) -> None:
        """Launches, on the current stream."""
        kernel = loaded(self.variant.id)
        values = self.values | {"block_out": self.tensor("block_out")[:, 0]}
        order = [values[one.name] for one in kernel.candidate.operands]
        kernel.launch(order, self.rows, pdl=pdl)

    def _arguments(self) -> Iterator[tuple[str, torch.Tensor | int]]:
        yield "prefix", self._rows(self.rows)
        yield "delta", self._rows(self.rows, scale=0.3)
        yield from self._mailbox()
        blocks = canaries(self.rows + 1, self.form.room, self.hidden)
        blocks[: self.rows] = self.poison
        drawn = self.inputs.normal(self.rows, self.saved, self.hidden, scale=2.0)
        blocks[: self.rows, : self.saved] = drawn
        yield "blocks", blocks
        yield "saved", self.saved
        yield "score", self.inputs.normal(self.hidden, scale=self.hidden**-0.5, dtype=torch.float32)
        yield "norm", self.inputs.normal(self.hidden)
        for name in ("out", "prefix_out"):
            rows = canaries(self.rows + 1, self.hidden)
            rows[: self.rows] = self.poison
            yield name, rows
        apart = canaries(self.rows + 1, self.form.room, self.hidden)
        apart[: self.rows, 0] = self.poison
        yield "block_out", apart

    def _rows(self, rows: int, scale: float = 1.0) -> torch.Tensor:
        held = canaries(rows + 1, self.hidden)
        held[:rows] = self.inputs.normal(rows, self.hidden, scale=scale)
        return held

    def _mailbox(self) -> Iterator[tuple[str, torch.Tensor | int]]:
        words = torch.full((PARITIES, MOST_ROWS, self.hidden // 2), SENTINEL, dtype=torch.int32)
        box = words.to(DEVICE)
        arrived = self.inputs.normal(self.rows, self.hidden, scale=0.3)
        box[self.parity, : self.rows] = arrived.view(torch.int32)
        yield "mailbox", box
        yield "counter", torch.tensor([2 + self.parity, 0, 0], device=DEVICE)
        place = [PER_STEP, RANK, tuple(Site).index(Site.O_PROJ), LIMIT_NS]
        yield "exchange", torch.tensor(place, device=DEVICE)
        yield "ordinal", 0 if self.variant.kernel.startswith("attn-res-add") else 2
        yield "fail", torch.zeros(1, dtype=torch.int32, device=DEVICE)
        yield "health", torch.zeros(HEALTH_WORDS, dtype=torch.int64, device=DEVICE)

    def tensor(self, name: str) -> torch.Tensor:
        """An operand as it is now."""
        found = self.values[name]
        assert isinstance(found, torch.Tensor)
        return found

    def arrived(self) -> torch.Tensor:
        """[rows, H] that the mailbox held."""
        return self.before["mailbox"][self.parity, : self.rows].view(torch.bfloat16)

    def prefix(self) -> torch.Tensor:
        """[rows, H] of the new prefix, as it must come out."""
        held = {"prefix": self.before["prefix"][: self.rows]}
        held["delta"] = self.before["delta"][: self.rows]
        if self.form.arrives is not None:
            held[self.form.arrives] = self.arrived()
        if not self.form.delta:
            return held["prefix"]
        return (held["prefix"].float() + held["delta"].float()).bfloat16()

    def check(self) -> None:
        """Outputs are right, and nothing else has changed."""
        torch.cuda.synchronize()
        rows, p = self.rows, self.prefix()
        sources = wide(p)[:, None]
        if self.form.most:
            blocks = wide(self.before["blocks"][:rows, : self.saved])
            sources = torch.cat([blocks, sources], 1)
        norm = wide(self.before["norm"]) if self.form.normed else None
        exact = exact_mix(sources, wide(self.before["score"]), norm, self.hidden)
        if not self.form.most:  # one source: nothing is scored
            exact = exact_mix(sources, torch.zeros(self.hidden).double(), norm, self.hidden)
        assert_within(self.tensor("out")[:rows], exact.x, exact.bound)
        for name, want in self._untouched(p).items():
            got = self.tensor(name)
            assert torch.equal(bits(got), bits(want)), name

    def _untouched(self, p: torch.Tensor) -> Mapping[str, torch.Tensor]:
        """Every operand but the mix, as it must be."""
        want = dict(self.before)
        want["out"] = self.before["out"].clone()
        want["out"][: self.rows] = self.tensor("out")[: self.rows]
        if self.form.kept:
            want["prefix_out"] = self.before["prefix_out"].clone()
            want["prefix_out"][: self.rows] = p
        if self.form.block:
            want["block_out"] = self.before["block_out"].clone()
            want["block_out"][: self.rows, 0] = p
        if self.form.arrives is not None:  # armed again, in the rows of the launch alone
            want["mailbox"] = torch.full_like(self.before["mailbox"], SENTINEL)
        return want

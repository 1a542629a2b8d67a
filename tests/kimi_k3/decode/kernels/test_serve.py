# SPDX-License-Identifier: Apache-2.0
"""Kernels in a server: what they need is asked for at once, and rows find their variant."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from fasttrack.errors import InputError
from kimi_k3.backends import RankModel, Setup
from kimi_k3.config import full, tiny
from kimi_k3.decode.comm.loopback import LoopbackCommunicator
from kimi_k3.decode.exchanges import exchanges_of
from kimi_k3.decode.kernels import serve
from kimi_k3.decode.kernels.attn_res.operators import NAME
from kimi_k3.decode.kernels.attn_res.table import FORMS, TENSOR_PARALLEL
from kimi_k3.decode.kernels.build import parameters_of
from kimi_k3.decode.kernels.catalogue import operands, table
from kimi_k3.decode.kernels.serve import OnDevice, variants_for
from kimi_k3.engine.options import EngineConfig
from kimi_k3.packed import pack
from kimi_k3.reference.state import allocate
from kimi_k3.rounding import stock
from kimi_k3.weights import ModelWeights
from tests.kimi_k3.decode.server import SHAPE, ChosenPlan

ROWS = table("attn_res").variants


class Noting:
    """A loaded kernel that notes what it is launched with."""

    def __init__(self, variant: object) -> None:
        known = parameters_of(variant)  # type: ignore[arg-type]
        built = SimpleNamespace(digest=f"digest of {variant.id}")  # type: ignore[attr-defined]
        self.candidate = SimpleNamespace(
            variant=variant, built=built, operands=operands("attn_res", known)
        )
        self.launches, self.given = 0, []

    def launch(self, values: list[object], rows: int, *, pdl: bool) -> None:
        self.launches += 1
        self.given.append((values, rows, pdl))


def on_device(tp: int = 8) -> OnDevice:
    rows = variants_for(ROWS, "sm_90a", tp)
    return OnDevice(tuple(Noting(one) for one in rows))  # type: ignore[misc]


@pytest.mark.parametrize("tp", TENSOR_PARALLEL)
@pytest.mark.parametrize("form", FORMS)
def test_every_number_of_rows_has_one_variant(form: str, tp: int) -> None:
    kernels = on_device(tp)
    for rows in range(1, 65):
        variant = kernels.serving(f"{NAME}-{form}", rows).candidate.variant
        assert (variant.tp, variant.kernel) == (tp, f"{NAME}-{form}")
        assert variant.rows[0] <= rows <= variant.rows[1]
    for rows in (0, 65):
        with pytest.raises(ValueError, match=f"serves {rows} rows"):
            kernels.serving(f"{NAME}-{form}", rows)


@pytest.mark.parametrize("form", FORMS)
def test_operands_go_to_the_launch_in_the_order_of_the_code(form: str) -> None:
    kernels = on_device()
    kernel = kernels.serving(f"{NAME}-{form}", 3)
    values = {one.name: at for at, one in enumerate(kernel.candidate.operands)}
    shuffled = dict(reversed(values.items())) | {"unknown to the code": 99}
    kernels(form, shuffled, 3)
    assert kernel.given == [(list(range(len(values))), 3, False)]  # type: ignore[attr-defined]


def test_what_was_launched_is_told_with_its_digest() -> None:
    kernels = on_device()
    assert [*kernels.launched()] == []
    kernel = kernels.serving(f"{NAME}-plain", 64)
    for _ in range(2):
        kernel.launch([], 64, pdl=False)
    (one,) = kernels.launched()
    identity = kernel.candidate.variant.id
    assert (one.kernel, one.variant) == (f"{NAME}-plain", identity)
    assert (one.digest, one.launches) == (f"digest of {identity}", 2)


@pytest.mark.parametrize(("arch", "tp"), [("sm_90a", 4), ("sm_120a", 8)])
def test_a_device_or_tensor_parallelism_without_variants_is_refused(arch: str, tp: int) -> None:
    want = f"decode_kernels: saw {arch} at tp {tp}; want one of sm_100a at tp 8, "
    with pytest.raises(InputError, match=want):
        variants_for(ROWS, arch, tp)


def specialized(weights: ModelWeights, folder: Path) -> None:
    comm = LoopbackCommunicator(exchanges_of(tiny(), 1, 1, 64, torch.float32))
    setup = Setup(tiny(), EngineConfig(), tp=8, rounding=stock(), decode_kernels=folder)
    caches = allocate(tiny(), weights, stock(), SHAPE)
    RankModel(setup, pack(tiny(), weights), caches).specialized(comm, ChosenPlan())  # type: ignore[arg-type]


def test_without_a_gpu_a_server_with_kernels_does_not_start(
    tiny_weights: ModelWeights, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="decode_kernels: saw no GPU; want a GPU, or none of them"):
        specialized(tiny_weights, tmp_path)


def test_a_server_of_another_model_does_not_start_with_them(
    tiny_weights: ModelWeights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "arch_of_device", lambda: "sm_90a")
    with pytest.raises(InputError, match=f"saw {full().hidden_size}; want {tiny().hidden_size}"):
        specialized(tiny_weights, tmp_path)

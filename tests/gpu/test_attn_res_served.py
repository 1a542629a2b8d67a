# SPDX-License-Identifier: Apache-2.0
"""Planned steps of a whole model over the residual mix on a GPU.

Cubins come from `.gpu/kernels/`, made by `python -m tests.gpu.wide_mini`, and for the first test by
`kimi-k3 kernels build --cache .gpu/kernels`. The stock path is plain PyTorch, so that no Triton is
compiled.
"""

import pytest
import torch

from fasttrack.errors import InputError
from kimi_k3.backends import specialized_rounding
from kimi_k3.config import full
from kimi_k3.decode.comm.loopback import LoopbackCommunicator
from kimi_k3.decode.exchanges import exchanges_of
from kimi_k3.decode.executor import Executor
from kimi_k3.decode.kernels.attn_res.operators import NAME, require_model, with_residual_mixes
from kimi_k3.decode.kernels.attn_res.table import FORMS
from kimi_k3.decode.kernels.build import parameters_of
from kimi_k3.decode.kernels.catalogue import candidate, table
from kimi_k3.decode.kernels.launch import Kernel
from kimi_k3.decode.kernels.serve import OnDevice, arch_of_device, variants_for, with_kernels
from kimi_k3.decode.providers import reference_providers
from kimi_k3.packed import PackedModel
from kimi_k3.reference.context import Context
from kimi_k3.rounding import Rounding, exact, stock
from tests.gpu.mini_sides import GPU, Side, untied
from tests.gpu.oracle import ON_GPU
from tests.gpu.test_executor import ROWS, EveryOther
from tests.gpu.test_stock_model import follow, live, off, plain, program
from tests.gpu.wide_mini import CACHE, KERNEL, rows, wide_mini

pytestmark = pytest.mark.skipif(not ON_GPU, reason="cubins run on a GPU alone")


def executor_over(weights: PackedModel, under: Side, rounding: Rounding) -> Executor:
    config = wide_mini()
    comm = LoopbackCommunicator(exchanges_of(config, 1, 1, ROWS, rounding.compute), device=GPU)
    ctx = Context(config, rounding)
    operators = reference_providers(ctx, weights, comm)
    return Executor(
        config,
        weights,
        under.caches,
        EveryOther(),  # type: ignore[arg-type]
        operators,
        comm,
        under.model,
        (1, 4),
        rounding.compute,
    )


def test_every_variant_of_the_device_is_loaded_for_the_full_model() -> None:
    found = variants_for(table(KERNEL).variants, arch_of_device(), 8)
    for one in found:
        require_model(full(), parameters_of(one))
    on_device = OnDevice(tuple(Kernel(candidate(KERNEL, one, CACHE)) for one in found))
    for count in range(1, 65):
        for form in FORMS:
            low, high = on_device.serving(f"{NAME}-{form}", count).candidate.variant.rows
            assert low <= count <= high
    with pytest.raises(ValueError, match="no variant of attn-res-add serves 65 rows"):
        on_device.serving(f"{NAME}-add", 65)


@pytest.fixture(scope="module")
def weights() -> PackedModel:
    return untied(wide_mini())


def test_planned_steps_are_served_by_the_kernel_and_as_exact_as_the_stock_path(
    weights: PackedModel,
) -> None:
    config = wide_mini()
    under = plain(config, weights, stock(), fp8=False)
    sides = (
        plain(config, weights, stock(), fp8=False),
        plain(config, weights, exact(torch.float64), fp8=False),
    )
    rounding = specialized_rounding("bf16", 1)
    launch = OnDevice(tuple(Kernel(candidate(KERNEL, one, CACHE)) for one in rows()))
    executor = executor_over(weights, under, rounding)
    executor = with_residual_mixes(executor, Context(config, rounding), launch)
    for step in program(config.vocab_size):
        got, same, true = executor.step(step), *(side.model.step(step) for side in sides)
        distance = off(live(step, got), live(step, true))
        assert distance <= 2 * off(live(step, same), live(step, true)) + 2**-7, step.shape
        for side in sides:
            follow(side.caches, under.caches)
    planned = executor.steps()["planned"]
    assert planned >= 2
    assert executor.providers() == ("reference", NAME, "stock")
    launched = {one.kernel.removeprefix(f"{NAME}-"): one.launches for one in launch.launched()}
    writes = sum(config.writes_block(layer) for layer in range(config.num_layers))
    assert launched["first"] == launched["last"] == planned
    assert launched["plain"] == planned * writes
    assert launched["add"] == planned * 2 * (config.num_layers - writes)


def test_the_published_kernels_do_not_serve_another_model(weights: PackedModel) -> None:
    config, rounding = wide_mini(), specialized_rounding("bf16", 1)
    executor = executor_over(weights, plain(config, weights, stock(), fp8=False), rounding)
    with pytest.raises(InputError, match="attn-res hidden: saw 7168; want 512"):
        with_kernels(executor, Context(config, rounding), 8, CACHE)
    with pytest.raises(InputError, match="sm_90a at tp 3; want one of"):
        with_kernels(executor, Context(config, rounding), 3, CACHE)

# SPDX-License-Identifier: Apache-2.0
"""Every variant, built for every architecture and audited: one code is built, read and launched."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from fasttrack.audit.finding import Verdict
from fasttrack.errors import InputError
from fasttrack.manifest.variants import Variant
from kimi_k3.decode.kernels import launch as launching
from kimi_k3.decode.kernels.attn_res.machine_code import cubin_of
from kimi_k3.decode.kernels.attn_res.table import ARCHS, FORMS
from kimi_k3.decode.kernels.audit import audited
from kimi_k3.decode.kernels.build import build
from kimi_k3.decode.kernels.catalogue import candidate, table
from kimi_k3.decode.kernels.contracts import contract_files
from kimi_k3.decode.kernels.launch import Kernel, LaunchError, loaded
from kimi_k3.decode.kernels.registry import KERNELS

ATTN_RES = "attn_res"


def row(identity: str) -> Variant:
    (found,) = (one for one in table(ATTN_RES).variants if one.id == identity)
    return found


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_variant_is_built_and_proved(kernel: str, arch: str, tmp_path: Path) -> None:
    variants = [one for one in table(kernel).variants if one.arch == arch]
    found = [*audited(kernel, variants, tmp_path)]
    assert {row.id for one in found for row in one.variants} == {one.id for one in variants}
    for one in found:
        saw = [finding.saw for each in one.outcomes for finding in each.audited.findings]
        assert one.verdict is Verdict.PROVED, (one.variants[0].id, saw)
        assert {len(one.outcomes), *(len(each.audited.waits) for each in one.outcomes)} == {1}
        for variant in one.variants:
            assert candidate(kernel, variant, tmp_path).built.digest == one.digest


def test_the_contracts_are_those_that_the_variants_ask_for() -> None:
    root = launching.__file__.split("kimi_k3")[0]
    for path, text in contract_files().items():
        assert Path(root, path).read_text(encoding="utf-8") == text
    assert len(contract_files()) == 2 * len(FORMS)


@pytest.mark.parametrize("identity", ["first-m32-tp8-sm90a", "last-m64-tp16-sm103a"])
def test_build_audit_and_launch_see_one_digest(identity: str, tmp_path: Path) -> None:
    variant = row(identity)
    built = candidate(ATTN_RES, variant, tmp_path)
    (one,) = audited(ATTN_RES, [variant], tmp_path)
    collected = cubin_of(json.loads(variant.model_dump_json(exclude={"audit"})))
    with driver() as seen:
        Kernel(built)
    assert {built.built.digest, one.digest, sha256(collected).hexdigest()} == {
        sha256(seen.loaded).hexdigest()
    }
    assert loaded()[built.built.digest] == built.built.entry


def test_code_that_does_not_compile_leaves_nothing_behind(tmp_path: Path) -> None:
    wrong = row("add-m32-tp8-sm90a").model_copy(update={"cluster": 5})
    with pytest.raises(InputError, match="7168 columns over 5 blocks"):
        build(ATTN_RES, wrong, tmp_path)
    assert [*tmp_path.iterdir()] == []


@contextmanager
def driver(status: str = "CUDA_SUCCESS") -> Iterator[SimpleNamespace]:
    """A driver that notes what it is given."""
    seen = SimpleNamespace(loaded=b"", launches=[])
    real, result = launching.driver, launching.driver.CUresult

    class Noting:
        """The names of the real one; no call reaches it."""

        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

        def cuLibraryLoadData(self, code: bytes, *_: object) -> Any:
            seen.loaded = code
            return getattr(result, status), "library"

        def cuLibraryGetKernel(self, _: object, name: bytes) -> Any:
            seen.entry = name
            return result.CUDA_SUCCESS, "kernel"

        def cuKernelGetFunction(self, _: object) -> Any:
            return result.CUDA_SUCCESS, "function"

        def cuFuncSetAttribute(self, _: object, name: Any, value: int) -> Any:
            seen.attribute = (name.name, value)
            return (result.CUDA_SUCCESS,)

        def cuLaunchKernelEx(self, config: Any, function: str, parameters: Any, _: int) -> Any:
            seen.launches.append((config, function, parameters))
            return (result.CUDA_SUCCESS,)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launching, "driver", Noting())
        patch.setattr(torch.cuda, "current_stream", lambda: SimpleNamespace(cuda_stream=7))
        yield seen


def kernel_of(identity: str, cache: Path) -> Kernel:
    return Kernel(candidate(ATTN_RES, row(identity), cache))


def values(kernel: Kernel) -> list[torch.Tensor | int]:
    """Tensors that fit, for three rows."""
    found: list[torch.Tensor | int] = []
    for one in kernel.candidate.operands:
        dtype = {"bf16": torch.bfloat16, "fp32": torch.float32}.get(one.dtype)
        if dtype is None:
            found.append(one.high)
        else:
            size = (3, *one.shape[1:]) if len(one.shape) > 1 else one.shape
            found.append(torch.empty_strided(size, one.strides, dtype=dtype))
    return found


@pytest.mark.parametrize("pdl", [False, True])
def test_a_launch_has_the_shape_of_its_variant(pdl: bool, tmp_path: Path) -> None:
    with driver() as seen:
        kernel = kernel_of("add-m32-tp8-sm90a", tmp_path)
        given = values(kernel)
        kernel.launch(given, 3, pdl=pdl)
    ((config, function, (numbers, types)),) = seen.launches
    assert (function, seen.entry.decode()) == ("function", kernel.candidate.built.entry)
    assert (config.gridDimX, config.gridDimY, config.gridDimZ) == (7, 3, 1)
    assert (config.blockDimX, config.blockDimY, config.blockDimZ) == (128, 1, 1)
    assert config.sharedMemBytes == 4 * 32 * 29 + 16
    assert int(config.hStream) == 7
    names = [one.id.name.removeprefix("CU_LAUNCH_ATTRIBUTE_") for one in config.attrs]
    early = ["PROGRAMMATIC_STREAM_SERIALIZATION"] if pdl else []
    assert names == ["CLUSTER_DIMENSION", *early]
    assert config.attrs[0].value.clusterDim.x == 7
    assert list(numbers) == [v if isinstance(v, int) else v.data_ptr() for v in given]
    assert [one.__name__ for one in types].count("c_int") == 1
    assert kernel.launches == 1


def test_what_a_shape_asks_for_beyond_the_ordinary_is_asked_of_the_driver(tmp_path: Path) -> None:
    plain = candidate(ATTN_RES, row("first-m32-tp8-sm90a"), tmp_path)
    whole = replace(plain.shape, cluster=14, cooperative=True)
    large = replace(plain.shape, shared_bytes=64 * 1024)
    with driver() as seen:
        Kernel(plain)
        assert not hasattr(seen, "attribute")
        kernel = Kernel(replace(plain, shape=whole))
        kernel.launch(values(kernel), 3, pdl=True)
        assert seen.attribute == ("CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED", 1)
        Kernel(replace(plain, shape=large))
        assert seen.attribute == ("CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES", 64 * 1024)
    names = [one.id.name.removeprefix("CU_LAUNCH_ATTRIBUTE_") for one in seen.launches[0][0].attrs]
    assert names == ["CLUSTER_DIMENSION", "COOPERATIVE", "PROGRAMMATIC_STREAM_SERIALIZATION"]


def test_a_launch_of_no_rows_reaches_no_driver(tmp_path: Path) -> None:
    with driver() as seen:
        kernel = kernel_of("first-m32-tp8-sm90a", tmp_path)
        kernel.launch([], 0, pdl=False)
    assert seen.launches == []
    assert kernel.launches == 0


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda v: v[:-1], "3 values; want 4"),
        (lambda v: [v[0].float(), *v[1:]], r"prefix is torch.float32 .*; want bf16"),
        (lambda v: [*v[:3], v[2]], r"block_out is torch.bfloat16 \(7168, 1\); .* \(57344, 1\)"),
        (lambda v: [v[0].T, *v[1:]], "prefix is"),
        (lambda v: [v[0][0], *v[1:]], "prefix is"),
    ],
    ids=["too few", "dtype", "row stride", "transposed", "rank"],
)
def test_a_tensor_that_the_code_was_not_compiled_for_is_refused(
    change: Any, told: str, tmp_path: Path
) -> None:
    with driver() as seen:
        kernel = kernel_of("first-m32-tp8-sm90a", tmp_path)
        with pytest.raises(LaunchError, match=told):
            kernel.launch(change(values(kernel)), 3, pdl=False)
    assert seen.launches == []


def test_a_cubin_that_the_driver_refuses_is_not_said_to_be_loaded(tmp_path: Path) -> None:
    variant = row("plain-m64-tp8-sm100a")
    with driver("CUDA_ERROR_NO_BINARY_FOR_GPU"), pytest.raises(LaunchError, match="NO_BINARY"):
        Kernel(candidate(ATTN_RES, variant, tmp_path))
    assert candidate(ATTN_RES, variant, tmp_path).built.digest not in loaded()

# SPDX-License-Identifier: Apache-2.0
"""CUDA text and contract of a kernel that was drawn."""

import json
from random import Random

from fasttrack.audit.contract import Contract

from .choices import BARRIERS, INDICES, WAITERS, Choices, draw
from .texts import AFTER, BEFORE, BULK_STORE, CP_ASYNC, HELPERS, PIPELINE, PROXY

BYTES = 2048
"""Of a bulk copy or a tile: one float4 a thread."""


def source(seed: int, count: int) -> tuple[str, dict[str, tuple[Choices, Contract]]]:
    """A .cu file of `count` kernels, with what was drawn and the contract of each."""
    random = Random(seed)
    drawn = {f"g{seed}_{number}": draw(random) for number in range(count)}
    text = ["// SPDX-License-Identifier: Apache-2.0", '#include "common.cuh"', HELPERS]
    text += [kernel(name, one) for name, one in drawn.items()]
    return "\n".join(text), {name: (one, contract(name, one)) for name, one in drawn.items()}


def kernel(name: str, one: Choices) -> str:
    """The text of one kernel."""
    if one.read == "pipeline":
        return _pipeline(name, one)
    lines = [f"KERNEL(128) {name}({_signature(one)}) {{", *_unpacked(one), *_start(one)]
    body = _wait_and_read(one)
    if one.roles:
        lines += ["    if (threadIdx.x >= 64) {", f"        sum += all(w[{_index(one)} + 9]);",
                  "        if (sum > 1e30f) __nanosleep(7);", "    } else {"]  # fmt: skip
        lines += [f"    {line}" for line in body] + ["    }"]
    else:
        lines += body
    return "\n".join([*lines, "}", ""])


def _pipeline(name: str, one: Choices) -> str:
    """A kernel whose last warp copies for the others, two stages deep."""
    wait = _event(one)
    return "\n".join([
        f"KERNEL(128) {name}({_signature(one)}) {{", *_unpacked(one),
        *PIPELINE.format(
            index=_index(one),
            first="" if one.waiter in ("none", "thread") else wait,
            others=wait if one.waiter not in ("block", "length") else f"if (n > 4) {wait}",
        ).splitlines(), "}", "",
    ])  # fmt: skip


def _event(one: Choices) -> str:
    """The statement that waits."""
    if one.event == "pdl":
        return "WAIT();"
    read = "acquire_sys" if one.event == "acquire" else "relaxed_sys"
    spin = f"while (static_cast<int>({read}(flag)) < n) {{}}"
    return f"{spin} {PROXY}" if one.fenced else spin


def _index(one: Choices) -> str:
    return f"({INDICES[one.index]})"


def _signature(one: Choices) -> str:
    restrict = "__restrict__ " if one.read == "restrict" else ""
    tensor = ", const __grid_constant__ Descriptor d" if one.read == "tensor" else ""
    if one.event != "pdl":
        tensor += ", const uint32_t* flag"
    if one.pointer == "struct":
        return f"Pointers p{tensor}"
    return (
        f"const {one.kind}* {restrict}w, const {one.kind}* {restrict}x, "
        f"const int* {restrict}m, {one.kind}* {restrict}y, int n{tensor}"
    )


def _unpacked(one: Choices) -> list[str]:
    if one.pointer != "struct":
        return []
    restrict = "__restrict__ " if one.read == "restrict" else ""
    return [
        f"    const {one.kind}* {restrict}w = static_cast<const {one.kind}*>(p.w);",
        f"    const {one.kind}* {restrict}x = static_cast<const {one.kind}*>(p.x);",
        f"    const int* {restrict}m = static_cast<const int*>(p.m);",
        f"    {one.kind}* {restrict}y = static_cast<{one.kind}*>(p.y);",
        "    int n = p.n;",
    ]


def _start(one: Choices) -> list[str]:
    lines = ["    float sum = 0.f;"]
    if one.read in ("cp.async", "bulk", "tensor"):
        lines += ["    __shared__ alignas(128) float4 near[128];"]
    if one.barrier == "mbarrier" or one.read in ("bulk", "tensor"):
        lines += [
            "    __shared__ uint64_t bar[2];",
            "    if (threadIdx.x == 0) {",
            "        init(&bar[0], 1);",
            "        init(&bar[1], 1);",
            '        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");',
            "    }",
            "    __syncthreads();",
        ]
    if one.trigger == "early":
        lines += ["    TRIGGER();"]
    if one.prefetch:
        lines += [f"    sum += all(w[{_index(one)}]);"]
    if one.lookup == "before":
        lines += ["    sum += all(w[m[blockIdx.x] * 128 + threadIdx.x]);"]
    if one.early:
        lines += [f"    sum += all(x[{_index(one)}]);"]
    if one.early or one.lookup == "before":
        lines += ["    if (sum > 1e30f) __nanosleep(5);"]
    if one.leave == "before":
        lines += [f"    if ({_index(one)} >= n) return;"]
    return lines


def _wait_and_read(one: Choices) -> list[str]:
    if one.place == "straight":
        lines = [*_wait(one, WAITERS[one.waiter]), *_read(one, _index(one))]
    elif one.place == "nested":
        lines = _nested(one)
    else:
        first = WAITERS[one.waiter]
        if one.place == "first" and first:
            first = f"k == 0 && ({first})"
        at = f"{_index(one)} + k * 128"
        if one.place == "every":
            at = _index(one)
        inner = [*_wait(one, first), *_read(one, at)]
        lines = ["    for (int k = 0; k < n; ++k) {", *(f"    {line}" for line in inner), "    }"]
        if one.waiter != "none" and one.event == "pdl":
            lines += ["    WAIT();"]
    if one.leave == "after":
        lines += [f"    if ({_index(one)} >= n) return;"]
    return [*lines, *_finish(one)]


def _nested(one: Choices) -> list[str]:
    wait = _wait(one, WAITERS[one.waiter])
    read = _read(one, f"{_index(one)} + (i * n + k) * 128")
    last = ["    WAIT();"] if one.waiter != "none" and one.event == "pdl" else []
    return [
        "    bool done = false;",
        "    for (int i = 0; i < n; ++i) {", "        for (int k = 0; k < n; ++k) {",
        "            if (!done) {", *wait, "                done = true;", "            }",
        *read, "        }", "    }", *last,
    ]  # fmt: skip


def _wait(one: Choices, who: str) -> list[str]:
    lines = []
    signal = " arrive(&bar[0]);" if one.barrier == "mbarrier" and not one.roles else ""
    if who == "true":
        lines += [f"    {_event(one)}"]
        if signal:
            lines += [f"    if (threadIdx.x == 0) {{{signal} }}"]
    elif who:
        teller = one.waiter in ("thread", "elected")
        lines += [f"    if ({who}) {{ {_event(one)}{signal if teller else ''} }}"]
        if signal and not teller:
            last = 96 if one.waiter == "last-warp" else 0
            lines += [f"    if (threadIdx.x == {last}) {{{signal} }}"]
    elif signal:
        lines += [f"    if (threadIdx.x == 0) {{{signal} }}"]
    if one.roles:
        lines += [] if one.barrier == "none" else ["    NAMED(1, 64);"]
    elif one.barrier == "mbarrier":
        lines += ["    await(&bar[0], 0);"]
    elif one.barrier != "none":
        lines += [f"    {BARRIERS[one.barrier]}"]
    return lines


def _read(one: Choices, at: str) -> list[str]:
    if one.read in ("bulk", "tensor"):
        copy = "bulk(near, x + blockIdx.x * 128, 2048, &bar[1]);"
        if one.read == "tensor":
            copy = "tile(near, &d, 0, blockIdx.x, &bar[1]);"
        return [
            f"    if (threadIdx.x == 0) {{ expect(&bar[1], {BYTES}); {copy} }}",
            "    await(&bar[1], 0);",
            "    sum += all(near[threadIdx.x]);",
        ]
    if one.read == "cp.async":
        text = CP_ASYNC.format(at=at, dent="    ")
        return [*text.splitlines(), "    sum += all(near[threadIdx.x]);"]
    if one.read == "nc":
        return [f"    sum += all(nc(x + {at}));"]
    if one.pointer == "select":
        return [f"    sum += all((n > 4 ? w : x)[{at}]);"]
    if one.pointer == "choice":
        return [
            f"    const {one.kind}* from = n == 3 ? x : n == 6 ? w + 64 : w;",
            f"    sum += all(from[{at}]);",
        ]
    return [f"    sum += all(x[{at}]);"]


def _finish(one: Choices) -> list[str]:
    lines = []
    if one.lookup == "after":
        lines += ["    sum += all(w[m[blockIdx.x] * 128 + threadIdx.x]);"]
    if one.trigger in BEFORE:
        lines += [f"    {BEFORE[one.trigger]}"]
    meet = "NAMED(1, 64);" if one.roles else "__syncthreads();"
    if one.put == "plain":
        lines += [f"    reinterpret_cast<float*>(y + {_index(one)})[0] = sum;"]
    else:
        text = BULK_STORE.format(meet=meet, read=".read" if one.put == "bulk-read" else "")
        lines += text.splitlines()
    if one.trigger in ("met", "one"):
        lines += [f"    {meet}"]
    if one.trigger in AFTER:
        lines += [f"    {AFTER[one.trigger]}"]
    return lines


def contract(name: str, one: Choices) -> Contract:
    """The contract of a kernel; a trigger at the start is by leave."""
    box = {"holds": "dynamic"} if one.event == "pdl" else {"holds": "mailbox", "after": "flag"}
    holds: dict[str, dict[str, str]] = {
        "w": {"holds": "static"}, "x": box, "m": {"holds": "metadata"}, "y": {"holds": "out"},
    }  # fmt: skip
    flat = [{"name": key, **value} for key, value in holds.items()]
    parameters: list[dict[str, object]] = [*flat, {"name": "n", "holds": "scalar"}]
    if one.pointer == "struct":
        order = ("w", "x", "m", "y")
        fields = [{"name": key, **holds[key], "offset": 8 * at, "size": 8}
                  for at, key in enumerate(order)]  # fmt: skip
        fields += [{"name": "n", "holds": "scalar", "offset": 32, "size": 4}]
        parameters = [{"name": "p", "holds": "struct", "fields": fields}]
    if one.read == "tensor":
        parameters += [{"name": "d", "descriptor": True, **box}]
    if one.event != "pdl":
        parameters += [{"name": "flag", "holds": "flag"}]
    leave = (
        "the kernel after it waits before it reads or writes" if one.trigger == "early" else None
    )
    document = {
        "contract": 1, "kernel": name, "block": [128, 1, 1], "cluster": 1,
        "pdl": one.event == "pdl", "parameters": parameters,
        "reads": ["w", "x", "m"], "writes": ["y"],
        "early_trigger": leave,
    }  # fmt: skip
    return Contract.model_validate_json(json.dumps(document))

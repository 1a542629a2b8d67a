# SPDX-License-Identifier: Apache-2.0
"""What a process has beside modules: hooks, environment, threads, settings, operators, by name.

Every answer is a text that is the same in every process in the same state.
"""

import _thread
import abc
import atexit
import codecs
import decimal
import gc
import locale
import logging
import os
import random
import signal
import socket
import sys
import threading
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from fasttrack.executed.inside.state import described, module_of

_TORCH: Mapping[str, str] = {
    "torch.get_default_dtype()": "get_default_dtype",
    "torch.get_default_device()": "get_default_device",
    "torch.get_num_threads()": "get_num_threads",
    "torch.get_num_interop_threads()": "get_num_interop_threads",
    "torch.get_float32_matmul_precision()": "get_float32_matmul_precision",
    "torch.are_deterministic_algorithms_enabled()": "are_deterministic_algorithms_enabled",
    "torch.is_grad_enabled()": "is_grad_enabled",
    "torch.is_inference_mode_enabled()": "is_inference_mode_enabled",
    "torch.is_autocast_enabled()": "is_autocast_enabled",
    "torch.is_anomaly_enabled()": "is_anomaly_enabled",
    "torch.initial_seed()": "initial_seed",
}
_TORCH_INSIDE: Mapping[str, str] = {
    "the stack of torch dispatch modes": "_len_torch_dispatch_stack",
    "the stack of torch function modes": "_len_torch_function_stack",
    "torch.backends.cuda.matmul.allow_tf32": "_get_cublas_allow_tf32",
    "torch.backends.cudnn.allow_tf32": "_get_cudnn_allow_tf32",
    "torch.backends.cudnn.benchmark": "_get_cudnn_benchmark",
    "torch.backends.cudnn.deterministic": "_get_cudnn_deterministic",
    "torch.backends.cudnn.enabled": "_get_cudnn_enabled",
    "torch.backends.mkldnn.enabled": "_get_mkldnn_enabled",
    "torch.backends.cuda.flash_sdp_enabled": "_get_flash_sdp_enabled",
    "torch.backends.cuda.math_sdp_enabled": "_get_math_sdp_enabled",
    "torch.backends.cuda.mem_efficient_sdp_enabled": "_get_mem_efficient_sdp_enabled",
    "reduced precision of fp16 sums": "_get_cublas_allow_fp16_reduced_precision_reduction",
    "reduced precision of bf16 sums": "_get_cublas_allow_bf16_reduced_precision_reduction",
}
_ENCODINGS = ("ascii", "latin-1", "utf-8", "utf-16", "idna", "rot13")


def process_state(is_own: Callable[[str], bool]) -> dict[str, str]:
    """Name to value, for all that this process has now.

    Args:
        is_own: tells the names of modules that may change as they like.
    """
    found: dict[str, str] = {}
    for look in (_hooks, _surroundings, _settings, _signals, _registries, _torch_settings):
        with suppress(Exception):  # one that can not be asked before can not be asked afterwards
            found |= dict(look())
    with suppress(Exception):
        found |= dict(_subclasses(is_own))
    with suppress(Exception):
        found |= dict(_operators())
    return found


def _hooks() -> Iterator[tuple[str, str]]:
    yield "sys.gettrace()", described(sys.gettrace())
    yield "sys.getprofile()", described(sys.getprofile())
    yield "threading.gettrace()", described(threading.gettrace())
    yield "threading.getprofile()", described(threading.getprofile())
    yield "functions registered with atexit", str(atexit._ncallbacks())
    yield "callbacks of the collector", str([described(hook) for hook in gc.callbacks])


def _surroundings() -> Iterator[tuple[str, str]]:
    for name, value in os.environ.items():
        yield f"os.environ[{name!r}]", value
    yield "the working directory", Path.cwd().name
    for place, thread in enumerate(threading.enumerate()):
        yield f"thread {place}", thread.name
    yield "threads", str(_thread._count())
    with suppress(OSError):
        listed = Path("/proc/self/task").glob("*/children")
        yield "processes", str(sum(len(file.read_text("ascii").split()) for file in listed))


def _settings() -> Iterator[tuple[str, str]]:
    yield "sys.getrecursionlimit()", str(sys.getrecursionlimit())
    yield "sys.getswitchinterval()", str(sys.getswitchinterval())
    yield "sys.flags", str(sys.flags)
    yield "gc.isenabled()", str(gc.isenabled())
    yield "gc.get_threshold()", str(gc.get_threshold())
    yield "gc.get_freeze_count()", str(gc.get_freeze_count() > 0)
    yield "the locale", locale.setlocale(locale.LC_ALL)
    yield "decimal.getcontext()", str(decimal.getcontext())
    yield "socket.getdefaulttimeout()", str(socket.getdefaulttimeout())
    yield "the state of random", sha256(repr(random.getstate()).encode()).hexdigest()[:16]
    root = logging.getLogger()
    yield "the root logger's level", str(root.level)
    yield "the root logger's handlers", str([described(handler) for handler in root.handlers])
    yield "logging.raiseExceptions", f"{logging.raiseExceptions} {logging.root.manager.disable}"
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        state = repr(numpy.random.get_state(legacy=True))
        yield "the state of numpy.random", sha256(state.encode()).hexdigest()[:16]
        yield "numpy.geterr()", str(numpy.geterr())
        yield "numpy.get_printoptions()", str(numpy.get_printoptions())


def _signals() -> Iterator[tuple[str, str]]:
    for number in sorted(signal.valid_signals()):
        yield f"the handler of signal {int(number)}", described(signal.getsignal(number))
    yield "the timer of signals", str(signal.getitimer(signal.ITIMER_REAL)[1])


def _registries() -> Iterator[tuple[str, str]]:
    for name in _ENCODINGS:
        yield f"the codec {name}", described(codecs.lookup(name).encode)
    metadata = sys.modules.get("importlib.metadata")
    if metadata is not None:
        for point in metadata.entry_points():
            yield f"entry point {point.group}:{point.name}", point.value


def _subclasses(is_own: Callable[[str], bool]) -> Iterator[tuple[str, str]]:
    """Classes registered with abstract ones of others, which no attribute shows."""
    dump = getattr(sys.modules.get("_abc"), "_get_dump", None)
    for kind in _abstract(abc.ABC, dump, is_own):
        registry = sorted(described(ref()) for ref in dump(kind)[0]) if dump else []
        yield f"classes registered with {kind.__module__}.{kind.__qualname__}", str(registry)


def _abstract(top: type, dump: object, is_own: Callable[[str], bool]) -> Iterator[type]:
    waiting, known = [object], set()
    while waiting and dump:
        kind = waiting.pop()
        for below in type.__subclasses__(kind):
            if below not in known:
                known.add(below)
                waiting.append(below)
                if type(below) is type(top) and not is_own(module_of(below)):
                    yield below


def _torch_settings() -> Iterator[tuple[str, str]]:
    torch = sys.modules.get("torch")
    if torch is None:
        return
    for name, ask in _TORCH.items():
        if (function := getattr(torch, ask, None)) is not None:
            yield name, str(function())
    for name, ask in _TORCH_INSIDE.items():
        if (function := getattr(torch._C, ask, None)) is not None:
            yield name, str(function())


def _operators() -> Iterator[tuple[str, str]]:
    """Operators of torch and where each part of them was registered."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(getattr(torch, "_C", None), types.ModuleType):
        return
    for name in torch._C._dispatch_get_all_op_names():
        registered = torch._C._dispatch_dump(name)
        yield f"the operator {name}", sha256(registered.encode()).hexdigest()[:16]

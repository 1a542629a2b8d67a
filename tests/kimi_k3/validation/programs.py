# SPDX-License-Identifier: Apache-2.0
"""Programs of candidates that end, hang, forge, or look for the oracle."""

import importlib
import json
import os
import stat
import struct
import time
from collections.abc import Callable, Mapping
from typing import Any

from kimi_k3.validation.launcher import Launcher


class Program:
    """Does one thing, and launches nothing."""

    def __init__(self, does: Callable[[], None]) -> None:
        self._does = does

    def run(self, launcher: Launcher, operands: Mapping[str, Any], rows: int) -> None:
        """See `launcher.Program`."""
        self._does()


def program(kind: str, **_: object) -> Program:
    """The program of that kind."""
    if kind == "oracle-at-start":
        importlib.import_module("kimi_k3.reference.attn_res")
    return Program(KINDS[kind])


def _hangs() -> None:
    time.sleep(600)


def _ends() -> None:
    os._exit(3)


def _raises() -> None:
    raise ValueError("no")


def _asks() -> None:
    try:
        importlib.import_module("kimi_k3.reference.attn_res")
    except ModuleNotFoundError:
        return
    raise AssertionError("the oracle can be imported")


def _forges() -> None:
    """Answers in the name of the harness, before the harness does."""
    said = {"nonce": "0", "error": "", "launches": [], "failed": [], "fallbacks": 0}
    message = json.dumps({**said, "foreign": [], "asked": [], "traced": None}).encode()
    _put(struct.pack("!i", len(message)) + message)


def _half() -> None:
    _put(struct.pack("!i", 1000) + b"{")
    time.sleep(600)


def _babbles() -> None:
    _put(struct.pack("!i", 5) + b"hello")


def _huge() -> None:
    _put(struct.pack("!i", 2**30))


def _put(message: bytes) -> None:
    """Writes wherever it can."""
    for number in range(3, 64):
        try:
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                os.write(number, message)
        except OSError:
            continue


KINDS = {
    "hangs": _hangs,
    "ends": _ends,
    "raises": _raises,
    "asks": _asks,
    "forges": _forges,
    "half": _half,
    "babbles": _babbles,
    "huge": _huge,
    "oracle-at-start": _asks,
}

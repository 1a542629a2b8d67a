# SPDX-License-Identifier: Apache-2.0
"""Checkpoints: safetensors files under the published tensor names, whole or one rank's share.

A checkpoint is a file, or a directory that holds `model.safetensors.index.json` and the files it
names, or `model.safetensors`. Files are memory-mapped, and a rank touches only its own bytes.

The published files are those of a multimodal model: every name of the text model starts with
`language_model.`, and there are tensors of a vision tower. `load_weights` accepts names with that
prefix or without it, though not both in one checkpoint, and passes over `vision_tower.` and
`mm_projector.`. `save_checkpoint` writes the prefix.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from fasttrack.errors import InputError, Problem
from kimi_k3.assembly import Entry, assemble, disassemble, model_entries
from kimi_k3.config import K3Config
from kimi_k3.sharding import Part, Sharding
from kimi_k3.weights import ModelWeights

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
CONFIG = "config.json"
PREFIX = "language_model."
NOT_TEXT = ("vision_tower.", "mm_projector.")
MAX_INDEX_BYTES = 256 << 20
MAX_PROBLEMS = 40
"""How many problems a message lists; the rest is counted."""


def load_weights(path: Path, config: K3Config, tp: int = 1, rank: int = 0) -> ModelWeights:
    """Reads one rank's weights.

    Args:
        path: a safetensors file, or a directory with an index or a single file.
        config: the model that the checkpoint must hold.
        tp: tensor parallelism.
        rank: this rank.

    Raises:
        InputError: everything that is wrong with the files' headers at once: files missing,
            truncated or malformed, and tensors missing, extra, misshapen or of another type.
            A_log padding that is not zero is found while reading.
    """
    sharding = Sharding(config, tp, rank)
    with ExitStack() as stack:
        files = _open(path, stack)
        problems = [*files.problems, *_mismatches(files, config)]
        if problems:
            raise InputError(_shortened(problems))
        return assemble(sharding, files.read)


@dataclass(frozen=True)
class _Stored:
    """Where a tensor lies, and what the file's header says of it."""

    file: str
    handle: Any
    key: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class _Files:
    """The opened files of a checkpoint; `tensors` by name without prefix."""

    tensors: Mapping[str, _Stored]
    problems: list[Problem]
    place: str

    def read(self, entry: Entry, part: Part) -> Tensor:
        """The live part of a tensor that a rank holds, copied out of the mapped file."""
        stored = self.tensors[entry.name]
        lazy = stored.handle.get_slice(stored.key)
        live = entry.tensor.live
        if live != entry.tensor.shape:
            whole: Tensor = lazy[:]
            if bool(whole[live[0] :].any()):
                raise InputError.one(
                    f"{stored.file}: {stored.key}",
                    f"values after the first {live[0]} that are not zero",
                    "zeros, which are padding there",
                )
            return whole[part.start : part.stop].clone()
        if part.axis is None:
            return _copied(lazy[:])
        if part.axis == 0:
            return _copied(lazy[part.start : part.stop])
        return _copied(lazy[:, part.start : part.stop])


def _copied(value: Tensor) -> Tensor:
    """Memory of its own: files may be replaced while the weights are in use."""
    return value.clone(memory_format=torch.contiguous_format)


def _open(path: Path, stack: ExitStack) -> _Files:
    """Opens all files and lists what they hold; what can not be opened becomes a problem."""
    folder, wanted = _file_list(path)
    tensors: dict[str, _Stored] = {}
    problems: list[Problem] = []
    for file in sorted(wanted):
        try:
            handle = stack.enter_context(safe_open(folder / file, framework="pt"))
        except FileNotFoundError:
            problems.append(Problem(str(folder / file), "no such file", "a file of the checkpoint"))
            continue
        except (SafetensorError, OSError) as error:
            want = "a complete safetensors file"
            problems.append(
                Problem(str(folder / file), _one_line(error), want, "download it again")
            )
            continue
        keys = set(handle.keys())
        indexed = wanted[file]
        if indexed is not None:
            problems += _index_mismatches(str(folder / file), keys, indexed)
        for key in keys:
            view = handle.get_slice(key)
            tensors[key] = _Stored(file, handle, key, tuple(view.get_shape()), view.get_dtype())
    return _Files(_without_prefix(tensors, problems), problems, str(path))


def _file_list(path: Path) -> tuple[Path, Mapping[str, set[str] | None]]:
    """The folder, its files, and for each file the tensors that the index expects in it."""
    if path.is_file():
        return path.parent, {path.name: None}
    if (path / INDEX).is_file():
        return path, _index(path / INDEX)
    if (path / SINGLE).is_file():
        return path, {SINGLE: None}
    saw = "neither" if path.is_dir() else "no such file or directory"
    raise InputError.one(str(path), saw, f"{INDEX} or {SINGLE}")


def _index(path: Path) -> Mapping[str, set[str] | None]:
    where = str(path)
    if path.stat().st_size > MAX_INDEX_BYTES:
        raise InputError.one(where, f"{path.stat().st_size} bytes", f"at most {MAX_INDEX_BYTES}")
    try:
        index = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise InputError.one(where, _one_line(error), "a JSON file") from error
    weight_map = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(weight_map, dict) or not weight_map:
        raise InputError.one(where, "no weight_map", "an object weight_map of tensor to file")
    files: dict[str, set[str] | None] = {}
    problems = []
    for tensor, file in weight_map.items():
        if not _is_file_name(file):
            want = "the name of a file beside the index"
            problems.append(Problem(f"{where}: {_shown(tensor)}", repr(file)[:80], want))
            continue
        expected = files.setdefault(file, set())
        if expected is not None:
            expected.add(tensor)
    if problems:
        raise InputError(_shortened(problems))
    return files


def _is_file_name(file: object) -> bool:
    """Whether a value out of an index can name a file beside it."""
    if not isinstance(file, str) or len(file) > 255 or not file.isprintable():
        return False  # a lone surrogate or a NUL is not printable, and no path
    return bool(file) and file != ".." and Path(file).name == file


def _index_mismatches(file: str, keys: set[str], indexed: set[str]) -> Iterator[Problem]:
    for key in sorted(indexed - keys):
        yield Problem(file, f"no tensor {_shown(key)}", f"the tensors that {INDEX} places there")
    for key in sorted(keys - indexed):
        yield Problem(file, f"{_shown(key)}, which {INDEX} does not place there", "no other tensor")


def _without_prefix(
    tensors: Mapping[str, _Stored], problems: list[Problem]
) -> Mapping[str, _Stored]:
    """The text model's tensors by bare name. With one prefixed name, all must be."""
    text = {key: value for key, value in tensors.items() if not key.startswith(NOT_TEXT)}
    if not any(key.startswith(PREFIX) for key in text):
        return text
    bare = {}
    for key, stored in text.items():
        if key.startswith(PREFIX):
            bare[key.removeprefix(PREFIX)] = stored
        else:
            want = f"names that start with {PREFIX}, as others of this checkpoint do"
            problems.append(Problem(stored.file, f"tensor {_shown(key)}", want))
    return bare


def _mismatches(files: _Files, config: K3Config) -> Iterator[Problem]:
    """What a checkpoint of this configuration must hold, against what the files hold."""
    expected = {entry.name: entry.tensor for entry in model_entries(config)}
    for name, tensor in expected.items():
        stored = files.tensors.get(name)
        if stored is None:
            want = f"{tensor.dtype} {list(tensor.shape)}"
            yield Problem(files.place, f"no tensor {name}", want)
            continue
        if stored.shape != tensor.shape:
            want = f"shape {list(tensor.shape)}"
            yield Problem(f"{stored.file}: {stored.key}", f"shape {list(stored.shape)}", want)
        if stored.dtype != tensor.dtype:
            yield Problem(f"{stored.file}: {stored.key}", stored.dtype, str(tensor.dtype))
    for name in sorted(files.tensors.keys() - expected.keys()):
        stored = files.tensors[name]
        yield Problem(
            f"{stored.file}: {_shown(stored.key)}", "an unknown tensor", "only the model's tensors"
        )


def _shortened(problems: list[Problem]) -> list[Problem]:
    if len(problems) <= MAX_PROBLEMS:
        return problems
    rest = len(problems) - MAX_PROBLEMS
    return [*problems[:MAX_PROBLEMS], Problem("and", f"{rest} more problems", "none")]


def _shown(key: str) -> str:
    """A name out of a file, safe to print."""
    return key if key.isprintable() and len(key) <= 200 else repr(key[:200])


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


def save_checkpoint(weights: ModelWeights, path: Path, config: K3Config, shards: int = 1) -> None:
    """Writes whole weights, and `config.json` beside them.

    A file appears under its name only when it is complete; the index comes last.

    Args:
        weights: of one rank that holds everything.
        path: a directory; made when it does not exist.
        config: the weights' configuration.
        shards: files of about equal size; with more than one, an index names them.

    Raises:
        ValueError: a tensor does not fit the configuration, or `shards` is below 1.
    """
    if shards < 1:
        raise ValueError(f"{shards} shards; want at least 1")
    path.mkdir(parents=True, exist_ok=True)
    stored = {
        PREFIX + entry.name: _as_stored(entry, value)
        for entry, value in disassemble(weights, Sharding(config, 1, 0))
    }
    groups = _groups(stored, shards)
    names = [
        SINGLE if shards == 1 else f"model-{number:05}-of-{shards:05}.safetensors"
        for number in range(1, shards + 1)
    ]
    for name, group in zip(names, groups, strict=True):
        partial = path / f"{name}.partial"
        save_file({key: stored[key] for key in group}, partial, metadata={"format": "pt"})
        partial.replace(path / name)
    _write_json(path / CONFIG, config.to_hf())
    if shards == 1:
        (path / INDEX).unlink(missing_ok=True)
        return
    total = sum(value.numel() * value.element_size() for value in stored.values())
    weight_map = {key: name for name, group in zip(names, groups, strict=True) for key in group}
    _write_json(path / INDEX, {"metadata": {"total_size": total}, "weight_map": weight_map})


def _as_stored(entry: Entry, value: Tensor) -> Tensor:
    """Contiguous memory of its own, with the zeros that a checkpoint stores after A_log."""
    if entry.tensor.live == entry.tensor.shape:
        return value.clone(memory_format=torch.contiguous_format)
    padded = value.new_zeros(entry.tensor.shape)
    padded[: len(value)] = value
    return padded


def _groups(stored: Mapping[str, Tensor], shards: int) -> list[list[str]]:
    """Names in their order, cut so that the groups have about the same number of bytes."""
    sizes = {key: prod(value.shape) * value.element_size() for key, value in stored.items()}
    total, before = sum(sizes.values()), 0
    groups: list[list[str]] = [[] for _ in range(shards)]
    for key, size in sizes.items():
        groups[min(before * shards // total, shards - 1)].append(key)
        before += size
    return groups


def _write_json(path: Path, content: Mapping[str, object]) -> None:
    partial = path.with_name(f"{path.name}.partial")
    partial.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    partial.replace(path)


def digest(weights: ModelWeights, config: K3Config, tp: int = 1, rank: int = 0) -> str:
    """SHA-256 over names, shapes, types and bytes of one rank's weights, padding left out."""
    total = sha256()
    for entry, value in disassemble(weights, Sharding(config, tp, rank)):
        total.update(f"{entry.name} {value.dtype} {list(value.shape)}\n".encode())
        total.update(value.contiguous().view(torch.uint8).numpy().tobytes())
    return f"sha256:{total.hexdigest()}"

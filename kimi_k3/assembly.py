# SPDX-License-Identifier: Apache-2.0
"""Between stored tensors, one by one, and `ModelWeights`; and between whole weights and ranks.

`assemble` asks a callback for each stored tensor and puts the answers in their places; reading a
checkpoint, dividing weights among ranks and random initialisation differ only in the callback.
`disassemble` is the way back.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

import torch
from torch import Tensor

from kimi_k3.config import K3Config
from kimi_k3.sharding import Part, Sharding
from kimi_k3.tensors import EXPERT, DType, StoredTensor, layer_tensors, model_tensors
from kimi_k3.weights import (
    DenseWeights,
    ExpertWeights,
    KdaWeights,
    LayerWeights,
    MlaWeights,
    ModelWeights,
    MoeWeights,
)

TORCH_DTYPES: Mapping[DType, torch.dtype] = {
    DType.BF16: torch.bfloat16,
    DType.FP32: torch.float32,
    DType.U8: torch.uint8,
}


@dataclass(frozen=True)
class Entry:
    """One tensor of a checkpoint.

    Attributes:
        name: complete, without a prefix that a multimodal checkpoint puts in front.
        tensor: its description.
    """

    name: str
    tensor: StoredTensor


Fetch = Callable[[Entry, Part], Tensor]
"""Gives the live part of a stored tensor that a rank holds."""


def model_entries(config: K3Config) -> Iterator[Entry]:
    """All tensors of a checkpoint, in the order of the layers."""
    for tensor in model_tensors(config):
        yield Entry(tensor.name, tensor)
    for layer in range(config.num_layers):
        yield from layer_entries(config, layer)


def layer_entries(config: K3Config, layer: int) -> Iterator[Entry]:
    """The tensors of one layer, expert after expert."""
    prefix = f"model.layers.{layer}."
    experts = []
    for tensor in layer_tensors(config, layer):
        if tensor.is_expert:
            experts.append(tensor)
        else:
            yield Entry(prefix + tensor.name, tensor)
    for expert in range(config.num_experts) if experts else ():
        for tensor in experts:
            yield Entry(prefix + tensor.name.replace(EXPERT, str(expert)), tensor)


def assemble(sharding: Sharding, fetch: Fetch) -> ModelWeights:
    """One rank's weights out of stored tensors.

    Args:
        sharding: the rank; tensor parallelism 1 gives whole weights.
        fetch: called once for each stored tensor.
    """
    config = sharding.config
    found = {
        tensor.place: fetch(Entry(tensor.name, tensor), sharding.part(tensor.live, tensor.split))
        for tensor in model_tensors(config)
    }
    layers = tuple(_assemble_layer(sharding, layer, fetch) for layer in range(config.num_layers))
    return ModelWeights(**found, layers=layers)


def _assemble_layer(sharding: Sharding, layer: int, fetch: Fetch) -> LayerWeights:
    found: dict[str, Tensor] = {}
    expert_counts: dict[str, int] = {}
    for entry in layer_entries(sharding.config, layer):
        tensor = entry.tensor
        part = sharding.part(tensor.live, tensor.split)
        value = fetch(entry, part)
        if not tensor.is_expert:
            found[tensor.place] = value
            continue
        if tensor.place not in found:
            found[tensor.place] = _padding_only(sharding, tensor, part)
        expert = expert_counts.get(tensor.name, 0)
        expert_counts[tensor.name] = expert + 1
        _expert_slot(found[tensor.place], expert, tensor, part).copy_(value)
    attention = KdaWeights if sharding.config.is_kda(layer) else MlaWeights
    return LayerWeights(
        **_below(found, ""),
        attention=attention(**_below(found, "attention.")),
        ffn=_ffn(found, dense=sharding.config.is_dense(layer)),
    )


def _ffn(found: Mapping[str, Tensor], *, dense: bool) -> DenseWeights | MoeWeights:
    if dense:
        return DenseWeights(**_below(found, "ffn."))
    return MoeWeights(
        **_below(found, "ffn."),
        shared=DenseWeights(**_below(found, "ffn.shared.")),
        experts=ExpertWeights(**_below(found, "ffn.experts.")),
    )


def _below(found: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The places directly under a prefix."""
    names = {place: place.removeprefix(prefix) for place in found if place.startswith(prefix)}
    return {name: found[place] for place, name in names.items() if "." not in name}


def _padding_only(sharding: Sharding, tensor: StoredTensor, part: Part) -> Tensor:
    """The memory of all experts of a layer, filled with padding."""
    rows, columns = part.shape
    blocks = 2 if tensor.place.startswith("ffn.experts.w13") else 1
    shape = (sharding.config.num_experts, blocks * rows, columns)
    return torch.full(shape, tensor.fill, dtype=TORCH_DTYPES[tensor.dtype])


def _expert_slot(whole: Tensor, expert: int, tensor: StoredTensor, part: Part) -> Tensor:
    """The live elements of one stored matrix within the memory of all experts."""
    first = tensor.block * part.shape[0]
    rows, columns = part.live
    return whole[expert, first : first + rows, :columns]


def disassemble(weights: ModelWeights, sharding: Sharding) -> Iterator[tuple[Entry, Tensor]]:
    """Every stored tensor of one rank's weights, without padding; views where possible.

    Raises:
        ValueError: a tensor has not the shape or dtype that the rank's share has.
    """
    config = sharding.config
    for entry in model_entries(config):
        tensor = entry.tensor
        part = sharding.part(tensor.live, tensor.split)
        holder: ModelWeights | LayerWeights = weights
        pieces = entry.name.split(".")
        if pieces[1] == "layers":
            holder = weights.layers[int(pieces[2])]
        value: Tensor = attrgetter(tensor.place)(holder)
        if tensor.is_expert:
            expert = int(pieces[pieces.index("experts") + 1])
            value = _expert_slot(value, expert, tensor, part)
        want = TORCH_DTYPES[tensor.dtype]
        if tuple(value.shape) != part.live or value.dtype != want:
            raise ValueError(
                f"{entry.name}: saw {value.dtype} {list(value.shape)}; "
                f"want {want} {list(part.live)}"
            )
        yield entry, value


def shard(weights: ModelWeights, config: K3Config, tp: int, rank: int) -> ModelWeights:
    """One rank's share of whole weights, with the padding that the rank needs.

    Raises:
        InputError: the model can not be divided so.
    """
    whole = {entry.name: value for entry, value in disassemble(weights, Sharding(config, 1, 0))}
    return assemble(Sharding(config, tp, rank), lambda entry, part: take(whole[entry.name], part))


def take(value: Tensor, part: Part) -> Tensor:
    """The live part of a whole tensor."""
    if part.axis is None:
        return value
    return value.narrow(part.axis, part.start, part.stop - part.start).contiguous()


def unshard(ranks: Sequence[ModelWeights], config: K3Config) -> ModelWeights:
    """Whole weights from the shares of all ranks, rank 0 first.

    Raises:
        ValueError: a tensor that every rank holds whole differs between ranks.
    """
    tp = len(ranks)
    shares = [
        {entry.name: value for entry, value in disassemble(weights, Sharding(config, tp, rank))}
        for rank, weights in enumerate(ranks)
    ]

    def joined(entry: Entry, _part: Part) -> Tensor:
        values = [share[entry.name] for share in shares]
        if entry.tensor.split.axis is not None:
            return torch.cat(values, dim=entry.tensor.split.axis)
        first = _bytes(values[0])
        if any(not torch.equal(first, _bytes(other)) for other in values[1:]):
            raise ValueError(f"{entry.name}: not the same on all ranks")
        return values[0]

    return assemble(Sharding(config, 1, 0), joined)


def _bytes(value: Tensor) -> Tensor:
    return value.contiguous().view(torch.uint8)

# SPDX-License-Identifier: Apache-2.0
"""The closed words of a manifest. A word that is not here is an error, never "other".

Tiers and kinds of evidence are in `fasttrack.vocabulary`, which the policy shares.
"""

from enum import StrEnum

NOBODY = ("change-me", "change-me-too")
"""Owner and backup of a proposal whose author gave none; FT312 reports them until people are
named."""


class Status(StrEnum):
    """Whether the path may run at all."""

    ACTIVE = "active"
    SUSPENDED = "suspended"
    REVOKED = "revoked"

    @property
    def rank(self) -> int:
        """How much the state lets through: 0 for revoked, 2 for active."""
        return (Status.REVOKED, Status.SUSPENDED, Status.ACTIVE).index(self)


class Ranks(StrEnum):
    """Whether the ranks of a region are devices, or one rank's shapes with simulated peers."""

    REAL = "real"
    VIRTUAL = "virtual"


class Dtype(StrEnum):
    """Number formats, ordered so that near formats are neighbours."""

    FP32 = "fp32"
    BF16 = "bf16"
    FP16 = "fp16"
    FP8_E4M3 = "fp8_e4m3"
    FP8_E5M2 = "fp8_e5m2"
    MXFP8 = "mxfp8"
    INT8 = "int8"
    MXFP4 = "mxfp4"
    NVFP4 = "nvfp4"
    INT4 = "int4"


class GraphMode(StrEnum):
    """How a decode step is launched."""

    EAGER = "eager"
    PIECEWISE = "piecewise"
    FULL = "full"


class UnitAxis(StrEnum):
    """Scope axes that may change what a unit does. Hardware always does, so it is not listed.

    `rows` stands for the triple requests, draft_tokens and rows; `requests` is a synonym that
    authors may write beside it.
    """

    RANKS = "ranks"
    TENSOR_PARALLEL = "tensor_parallel"
    DECODE_CONTEXT_PARALLEL = "decode_context_parallel"
    REQUESTS = "requests"
    DRAFT_TOKENS = "draft_tokens"
    ROWS = "rows"
    CONTEXT = "context"
    GRAPH_MODE = "graph_mode"
    WEIGHTS = "weights"
    ACTIVATIONS = "activations"
    KV_CACHE = "kv_cache"
    CONV_STATE = "conv_state"
    RECURRENT_STATE = "recurrent_state"


class Metric(StrEnum):
    """What a performance claim measures."""

    UNIT_TIME_US = "unit_time_us"
    LAYER_TIME_US = "layer_time_us"
    DECODE_TOKENS_PER_S = "decode_tokens_per_s"
    TTFT_MS = "ttft_ms"
    REQUEST_LATENCY_MS = "request_latency_ms"
    P90_INTERACTIVITY = "p90_interactivity"


class Acceptance(StrEnum):
    """Where the acceptance of draft tokens comes from."""

    NONE = "none"
    SYNTHETIC = "synthetic"
    MEASURED = "measured"


class ClaimStatus(StrEnum):
    """Whether a claim was read somewhere or measured by this project."""

    REPORTED = "reported"
    MEASURED = "measured"

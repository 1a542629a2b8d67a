# SPDX-License-Identifier: Apache-2.0
"""Continuous batching of a few requests over any `kimi_k3.step.Backend`.

`engine.py` tells the main flow: admit, plan, compute, judge, commit. Everything here is host state
that all ranks hold alike: each rank runs its own engine, and what an engine decides depends only on
the requests it was given, in which order, and on logits whose bits are equal on every rank.

| file | holds |
|---|---|
| `request.py` | what is asked for; `results.py`: what comes back; `metrics.py`: what is counted |
| `state.py` | one request on its way |
| `pool.py`, `memory.py` | free lists; state slots and KV pages of a request |
| `scheduler.py`, `batch.py` | who takes part in a step; the step's tensors |
| `draws.py`, `sampler.py` | random numbers by position; distributions and tokens |
| `drafters.py`, `acceptance.py`, `speculation.py` | speculative decoding |
| `options.py`, `engine.py` | settings; the engine |
"""

# SPDX-License-Identifier: Apache-2.0
"""The operators of a step in plain PyTorch, batched: what both backends are built of on a CPU."""

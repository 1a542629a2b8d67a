# SPDX-License-Identifier: Apache-2.0
"""Kernels of which it is known, without the audit, how they must be judged.

Each `.cu` here has a `.yaml` beside it: one entry a kernel, with its contract in short words and
the verdict that its machine code deserves. The cubins are stored in `cubins.tar.xz`; they are made
again by `python -m tests.audit.controls build`, and `digests.yaml` says of which sources they are.
"""

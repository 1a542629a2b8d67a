# SPDX-License-Identifier: Apache-2.0
"""Tests of the kernels of the decode path, as far as they need no GPU."""

# SPDX-License-Identifier: Apache-2.0
"""Which kernels there are. Apart from all else, so that a new one makes no evidence stale."""

KERNELS = ("attn_res",)
"""Folders with a kernel; a test compares them with what lies here."""

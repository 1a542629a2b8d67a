# SPDX-License-Identifier: Apache-2.0
"""Kernels at the rows of one cell, in few seconds each: what evidence is collected with."""

# SPDX-License-Identifier: Apache-2.0
"""Tests of the Triton and cuBLAS operators on a GPU; collected only when this folder is named."""

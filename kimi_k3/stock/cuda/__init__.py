# SPDX-License-Identifier: Apache-2.0
"""The stock path's operators on a GPU: cuBLAS, fla-core and fused Triton kernels."""

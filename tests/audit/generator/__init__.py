# SPDX-License-Identifier: Apache-2.0
"""Random CUDA kernels around the dependency wait, compiled by nvcc and never written as SASS.

What they deserve is not known when they are made: the interpreter beside says it of the machine
code.
"""

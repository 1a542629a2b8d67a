# SPDX-License-Identifier: Apache-2.0
"""Attention residuals (spec 2.2): prefix add, block write, mix of all sources and output norm."""

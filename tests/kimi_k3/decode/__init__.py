# SPDX-License-Identifier: Apache-2.0
"""Tests of the gate, the planner, the executor and its communication."""

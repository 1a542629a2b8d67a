# SPDX-License-Identifier: Apache-2.0
"""Tests of the oracle: every block against a second formulation that shares no code with it."""

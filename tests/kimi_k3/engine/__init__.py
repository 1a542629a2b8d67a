# SPDX-License-Identifier: Apache-2.0
"""Tests of the engine over toy models and over the reference."""

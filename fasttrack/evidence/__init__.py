# SPDX-License-Identifier: Apache-2.0
"""Evidence: which cells a change owes, and which are covered."""

# SPDX-License-Identifier: Apache-2.0
"""FT5xx: evidence that a change brings is genuine, and says what it is worth."""

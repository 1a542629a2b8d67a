# SPDX-License-Identifier: Apache-2.0
"""FT2xx: code in the roots leaves alone what lies outside them, and can be switched off."""

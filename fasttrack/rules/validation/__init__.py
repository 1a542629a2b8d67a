# SPDX-License-Identifier: Apache-2.0
"""FT4xx: tests go on checking what they checked."""

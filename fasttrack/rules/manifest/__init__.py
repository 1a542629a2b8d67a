# SPDX-License-Identifier: Apache-2.0
"""FT3xx, manifest: the scope is well-formed, bounded, owned, and no wider than the policy."""

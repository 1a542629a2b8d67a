# SPDX-License-Identifier: Apache-2.0
"""The embedded example: a small repository and four changes, one for each verdict."""

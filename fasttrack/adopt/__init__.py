# SPDX-License-Identifier: Apache-2.0
"""Adoption: the files that a repository starts with."""

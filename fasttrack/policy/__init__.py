# SPDX-License-Identifier: Apache-2.0
"""The policy: what a repository lets through the fast track, read from the target branch's tip."""

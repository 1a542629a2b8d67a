# SPDX-License-Identifier: Apache-2.0
"""Facts about one change, read from git objects; start at `fasttrack.change.read`.

Everything above this package sees a `Change` and never git, a clock, an environment variable or
the working tree.
"""

# SPDX-License-Identifier: Apache-2.0
"""What runs in the processes that also run code of a change, on the standard library alone.

Nothing that these modules say is more than the word of a process in which hostile code has run.
"""

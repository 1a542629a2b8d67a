# SPDX-License-Identifier: Apache-2.0
"""Runs machine code, to see which of its reads come too early.

Written from the meaning of the instructions alone, and without the audit: a kernel is executed,
thread by thread, over a memory whose dynamic part another kernel is still writing. The other
kernel finishes as late as it can: only when every thread here waits, directly or for one that does.
A read that happened before that is stale. Whatever can not be executed raises `NotExecuted`;
nothing is guessed.
"""

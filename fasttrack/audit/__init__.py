# SPDX-License-Identifier: Apache-2.0
"""Proving the order of loads in machine code: which memory a kernel reads before it may.

`judge.py` is the flow: a cubin is read into a `program`, its contract is laid beside it, `flow`
works out which threads have waited where and what each address points to, and each rule under
`rules/` asks one question of that.
"""

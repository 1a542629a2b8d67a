# SPDX-License-Identifier: Apache-2.0
"""Kernels of the decode path: each in a folder of its own, compiled anywhere, launched as compiled.

A folder `<name>/` holds

    kernel.py         the kernel in the CuTe DSL, and what it is compiled with
    shape.py          how a variant is launched, from its parameters alone
    variants.json     which variant serves which rows, a table as `fasttrack` reads it
    contracts/        what its operands hold, for the audit; made of `shape.py`
    machine_code.py   makes the machine code of a variant, for evidence

`build` makes cubins of it, `launch` runs those and nothing else. `docs/kernels.md` adds one.
"""

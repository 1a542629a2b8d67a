# SPDX-License-Identifier: Apache-2.0
"""Validates kernels: a candidate runs in a process of its own, and another one judges its bytes.

    candidate   what is judged, as data: an entry, its operands, its machine code
    operators/  what it should compute: schema, inputs, the float64 answer, the bound on errors
    session     the judge's side of a candidate's process; `child` is the other side
    trial       one call: fresh content at fresh addresses, poison, canaries, and what came of it
    gates/      what is asked of a candidate, one file each
    controls/   candidates that are wrong on purpose: each gate must catch its own
    validate    runs the gates and the controls, and says what they found

The process of a candidate imports `child`, `launcher`, `attach` and `wall` of this package, and
nothing that knows an answer.
"""

# SPDX-License-Identifier: Apache-2.0
"""What a kernel does, as far as its instructions show it: who waited where, what is read.

An abstract interpretation. `values` and `numbers` say what a register may hold, `blocks` where
control may go, `machine` what one instruction does, `explore` what holds at each point, and
`handoff` which barriers pass on what a thread has waited for. `facts` is what rules look at.
"""

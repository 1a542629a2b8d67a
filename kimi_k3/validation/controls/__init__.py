# SPDX-License-Identifier: Apache-2.0
"""Negative controls: an honest candidate each, and one named fault that a gate must catch.

    controls.yaml     which fault is whose, and why it is there
    mix, delta        honest programs, plain PyTorch, and one class for each fault of theirs
    wait.ptx          machine code for the static gate; its faults are edits of that text
    candidates        candidates of all of them
    run               runs them

Programs run in a candidate's process and import nothing that knows an answer.
"""

# SPDX-License-Identifier: Apache-2.0
"""Runs code of a change, in a sandbox and only where that was asked for.

`run` is the way in; `sandbox` and `box` say what the code may do; what runs beside that code, in
its own processes, is in `inside`.
"""

# SPDX-License-Identifier: Apache-2.0
"""Scope manifests: what a decode path claims, as data.

`load` reads a manifest strictly, `model` says what each field means, `region` answers questions
about the scope as a set, `points` lists the cells that evidence owes, `widening` compares two
manifests, `variants` reads the tables beside the kernels.
"""

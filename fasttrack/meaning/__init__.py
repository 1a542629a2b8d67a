# SPDX-License-Identifier: Apache-2.0
"""What code means, as far as its text tells: a static model of modules, names and effects.

Sources are read from git objects and parsed with `ast`; nothing is imported and nothing runs.
"""

# SPDX-License-Identifier: Apache-2.0
"""A contribution pipeline that judges a narrow change by its scope and its evidence.

Start at `fasttrack.verdict.evaluate`, the main flow; `docs/index.md` maps the rest.
"""

__version__ = "0.1.0"

# SPDX-License-Identifier: Apache-2.0
"""The prepared operators, cell by cell: `fasttrack evidence collect` runs these tests too."""

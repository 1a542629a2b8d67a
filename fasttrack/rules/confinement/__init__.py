# SPDX-License-Identifier: Apache-2.0
"""FT1xx, confinement: the change stays inside the roots and the wiring, and hides nothing."""

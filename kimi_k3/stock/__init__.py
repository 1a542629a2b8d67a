# SPDX-License-Identifier: Apache-2.0
"""`auto`, the default backend: what a good engine does today, and the baseline of comparisons."""

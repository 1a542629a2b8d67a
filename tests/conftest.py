# SPDX-License-Identifier: Apache-2.0
"""Settings of all tests: one hypothesis profile, the same seeds everywhere."""

from hypothesis import settings

settings.register_profile("project", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("project")

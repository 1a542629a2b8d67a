# SPDX-License-Identifier: Apache-2.0
"""Reports: the only place where findings become words for people or records for programs."""

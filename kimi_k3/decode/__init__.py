# SPDX-License-Identifier: Apache-2.0
"""`decode_backend: latency_specialized`: the decode path that the scope manifest governs."""

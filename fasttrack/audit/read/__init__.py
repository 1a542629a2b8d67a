# SPDX-License-Identifier: Apache-2.0
"""Front ends: bytes in, `program.Kernel` out. NVIDIA's own tools read the machine code."""

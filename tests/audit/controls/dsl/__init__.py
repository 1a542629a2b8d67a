# SPDX-License-Identifier: Apache-2.0
"""Controls that are written in the CuTe DSL, which compiles them without a GPU.

`kernels.py` is a module as `fasttrack audit` takes it. Where the DSL is not installed, the stored
cubins are audited under the contracts that were stored with them.
"""

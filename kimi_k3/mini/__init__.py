# SPDX-License-Identifier: Apache-2.0
"""`decode_operators: prepared`: operators of planned steps for a processor and the mini model.

The reference providers convert a weight whenever they read it, and decode the experts they visit.
Here all of that is done once, when a rank is built, for memory that the mini model can spare; what
follows from a step's shape and slots alone is found once a step. Every product and every sum is
the one of the reference provider, so that both give the same bits.

| file | what |
|---|---|
| `scope` | the gate: asks `manifests/kimi-k3-mini.yaml` |
| `assembly` | prepares a rank's weights and replaces its providers |
| `cast`, `windows` | weights in the compute dtype; the addresses of a step |
| `residual`, `kda`, `mla`, `router`, `experts`, `ffn`, `head` | one unit each |
| `identity` | the digest of a model's weights |
"""

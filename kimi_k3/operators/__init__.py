# SPDX-License-Identifier: Apache-2.0
"""The operators of a step in plain PyTorch, batched: what both backends are built of on a CPU.

Each block computes what the block of the same name in `kimi_k3.reference` computes, with the same
rounding points in the same places, over packed weights and for all rows at once; a row's last
bits may depend on the rows beside it. Sums over ranks are the caller's.

| file | what |
|---|---|
| `ends` | embedding; last norm and head |
| `residual` | attention residuals |
| `kda`, `kda_prefill`, `kda_chunks` | Kimi delta attention: windows, prompts, and the chunk form |
| `mla`, `mla_prefill` | latent attention: windows absorbed, prompts with keys of each head |
| `ffn`, `moe`, `expert_weights` | gated FFN; mixture of experts; decoding MXFP4 |
| `addresses`, `linear` | where requests keep their state; the matrix product |

On a GPU no operator brings a number to the host but `moe.route`, whose doubtful scores the host
decides, and `moe.experts` of more rows than a window has.
"""

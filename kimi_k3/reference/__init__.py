# SPDX-License-Identifier: Apache-2.0
"""The oracle: Kimi K3's decode step in plain PyTorch, written from the equations.

Read in this order: `linear`, `norm`, `functions` (a few lines of algebra), `attn_res` (how layers
are mixed),
`kda` (linear attention, with `kda_forms` for the same recurrence written twice more), `mla`,
`ffn`, `latent_moe`, `head`, and `model` (the depth loop). `state` is the only file that reads or
writes caches; `context` says what every block is given; `hooks` lists every intermediate by name.

Nothing here is fast. A row's bits do not depend on the rows beside it, so that a verify window
and single steps agree exactly.
"""

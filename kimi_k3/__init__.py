# SPDX-License-Identifier: Apache-2.0
"""The Kimi K3 decode step as an opt-in backend beside `auto`.

Start at `kimi_k3.reference.model` to learn the model, at `kimi_k3.config` for its shapes.

What it may be used for is in `manifests/kimi-k3-decode.yaml`; the gate in
`kimi_k3.decode.scope` reads that file. An independent implementation for the Kimi K3 weights;
"Kimi" is Moonshot AI's name.
"""

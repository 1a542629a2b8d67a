# SPDX-License-Identifier: Apache-2.0
"""How ranks of the decode path exchange partial results: mailboxes, failure, stand-ins.

* `interface`: what the executor and the operators see.
* `words`: tensors as 32-bit words, one value of which means "not yet written".
* `mailbox`: buffers, parities, re-arming; why two or three parities suffice.
* `health`: what a rank leaves behind when a wait was in vain, and the error it ends in.
* `communicator`: one rank's exchanges over mailboxes.
* `faults`, `local`: all ranks in one process, with faults planted as data.
* `loopback`: one rank alone, which stores what its peers would.
"""

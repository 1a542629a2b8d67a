# SPDX-License-Identifier: Apache-2.0
"""What the benchmark compares with: parse the lines, verify their signatures, and nothing else."""

import gzip
import json
import sys
from base64 import b64decode
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from tests.evidence.keys import key

KIND = b"application/vnd.in-toto+json"
KEYS = {
    one.id: Ed25519PublicKey.from_public_bytes(bytes.fromhex(one.public))
    for one in (key("lab"), key("cloud"))
}


def verify(line: bytes) -> None:
    """Raises unless the one signature of an envelope is valid."""
    envelope = json.loads(line)
    payload = b64decode(envelope["payload"])
    (signature,) = envelope["signatures"]
    signed = b"DSSEv1 %d %b %d %b" % (len(KIND), KIND, len(payload), payload)
    KEYS[signature["keyid"]].verify(b64decode(signature["sig"]), signed)
    json.loads(payload)


if __name__ == "__main__":
    files = (gzip.decompress(path.read_bytes()) for path in Path(sys.argv[1]).iterdir())
    lines = [line for text in files for line in text.splitlines()]
    for one in lines:
        verify(one)
    sys.exit(len(lines) != int(sys.argv[2]))

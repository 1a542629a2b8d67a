# SPDX-License-Identifier: Apache-2.0
"""One sigstore bundle for tests, policies that trust whoever signed it, and edits of it."""

import hashlib
import json
from base64 import b64decode
from collections.abc import Callable
from typing import Any

from fasttrack.evidence.sigstore_bundle import read_bundle
from fasttrack.policy.trust import Identity, Trust
from fasttrack.vocabulary import Kind
from tests.evidence.keys import identity
from tests.evidence.sigstore_instance import Instance
from tests.evidence.strategies import good

INSTANCE = Instance()
ROOT = INSTANCE.root()
STATEMENT = good(Kind.KERNEL_TEST)
LINE = INSTANCE.bundle(STATEMENT)
GOOD = read_bundle(LINE, "x")
Whole = dict[str, Any]
Edit = Callable[[Whole], object]


def trusting(*identities: Identity, root: bytes = ROOT, **changes: Any) -> Trust:
    """A policy's trust in these identities; in `ci` when none is given."""
    digest = hashlib.sha256(root).hexdigest()
    trust = Trust(identities=identities or (identity(),), sigstore_root=digest, **changes)
    return trust.with_root(root)


def edited(edit: Edit, line: bytes = LINE) -> bytes:
    whole = json.loads(line)
    edit(whole)
    return json.dumps(whole).encode()


def entry(whole: Whole) -> Whole:
    found: Whole = whole["verificationMaterial"]["tlogEntries"][0]
    return found


def der(whole: Whole) -> bytes:
    return b64decode(whole["verificationMaterial"]["certificate"]["rawBytes"])

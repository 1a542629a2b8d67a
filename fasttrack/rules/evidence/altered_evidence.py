# SPDX-License-Identifier: Apache-2.0
"""FT501: evidence files hold the bytes that they are named by, and stay as they are."""

import hashlib
from collections.abc import Iterator

from fasttrack.case import Case
from fasttrack.change.tree import Entry
from fasttrack.evidence.store_files import MAX_FILE_BYTES, is_name_of
from fasttrack.finding import Finding, Level
from fasttrack.rules.base import Rule
from fasttrack.rules.evidence.told import brought_entries


class AlteredEvidence(Rule):
    """Evidence files that were edited, or bear a name that is not theirs."""

    id = "FT501"
    slug = "altered-evidence"
    title = "evidence files hold what they are named by"
    level = Level.BLOCK
    refuses = (
        "An evidence file that the change edits, or brings with other bytes than the SHA-256 in "
        "its name."
    )
    why = (
        "Evidence is only added. A file that was edited or cut short is either damaged or forged, "
        "and whatever else lies in it is seen by no digest, budget or approval."
    )
    blind = "What was altered before the file got its name; signatures show that."
    fix = "take the file as `fasttrack evidence sign` or `merge` wrote it"
    waivable = False

    def check(self, case: Case) -> Iterator[Finding]:
        """Compares names with digests."""
        for entry in brought_entries(case):
            if entry.modified and entry.old.oid != entry.new.oid:
                saw = "an evidence file, edited"
            elif named := misnamed(case, entry):
                saw = f"bytes with the digest {named}"
            else:
                continue
            want = "files that are only added, with the bytes that they are named by"
            yield self.finding(path=entry.path, saw=saw, want=want, content=entry.new.oid)


def misnamed(case: Case, entry: Entry) -> str:
    """The digest of a file that is not named by it; empty when it is, or is no file to read."""
    regular = entry.new.mode.startswith("100")
    if not regular or case.change.size(entry.new) > MAX_FILE_BYTES:
        return ""
    digest = hashlib.sha256(case.change.blob(entry.new, MAX_FILE_BYTES)).hexdigest()
    return "" if is_name_of(entry.path.rpartition("/")[2], digest) else digest

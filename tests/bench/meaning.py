# SPDX-License-Identifier: Apache-2.0
"""How long the isolation rules take for Python files as they are published.

    python -m tests.bench.meaning FOLDER [--repository DIR] [--parsed] [--output FILE]

FOLDER is read where it lies and stands for one change that adds it as the roots of a new path;
with `--repository`, a folder around it, the other files are there before. Milliseconds of processor
time for a file: first of the whole change in this process, which has done nothing before, and then
of each file as a change of its own, with the median and the 95th percentile.

With `--parsed` the imports of the files are known before the clock starts: FT124 asks for them in
every check, and needs a parse of each file, which the rules of this family then have for nothing.
"""

import argparse
import gc
import json
import statistics
import time
from collections.abc import Mapping
from datetime import date
from pathlib import Path

from fasttrack.case import Case, Config, ManifestSet
from fasttrack.change.imports import imports_of
from fasttrack.cli.main import OBJECTS_BEFORE_COLLECTION
from fasttrack.config import read_base_manifests, read_config
from fasttrack.errors import FactUnavailable
from fasttrack.finding import Finding
from fasttrack.rules import RULES
from fasttrack.rules.engine import run_rules
from tests.meaning.corpus import project
from tests.meaning.judged import MemoryChange

ISOLATION = tuple(rule for rule in RULES if rule.id.startswith("FT2"))
AS_OF = date(2026, 11, 29)
ALONE = 400
"""Files that are looked at as changes of their own."""


def read(folder: Path, above: Path) -> dict[str, str]:
    """The Python files in a folder, by their path from above it; unreadable bytes are replaced."""
    return {
        path.relative_to(above).as_posix(): path.read_text("utf-8", "replace")
        for path in sorted(folder.rglob("*.py"))
    }


def settings(root: str) -> tuple[Config, ManifestSet]:
    """The policy of the corpus, and one path of it whose roots are a folder."""
    plain = {path: text for path, text in project().items() if path.startswith("manifests/")}
    del plain["manifests/other.yaml"]
    plain["manifests/fast.yaml"] = plain["manifests/fast.yaml"].replace("host/fast/", f"{root}/")
    change = MemoryChange(plain, plain)
    config = read_config(change, folder=None, policy_file=None)
    return config, read_base_manifests(change, config)


def judged(
    base: Mapping[str, str], head: Mapping[str, str], config: Config, manifests: ManifestSet
) -> tuple[float, tuple[Finding, ...]]:
    """Seconds of processor time that the rules take for a change, and what they find."""
    change = MemoryChange(base, head)
    start = time.process_time()
    found = run_rules(ISOLATION, Case(change, config, manifests, manifests, AS_OF, labelled=True))
    return time.process_time() - start, found


def main() -> None:
    """Measures, prints a line, and writes the record."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--repository", type=Path)
    parser.add_argument("--parsed", action="store_true")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    gc.set_threshold(OBJECTS_BEFORE_COLLECTION)  # as the command line does
    above = (given.repository or given.folder).parent
    files = read(given.folder, above)
    around = read(given.repository, above) if given.repository else {}
    around = {path: text for path, text in around.items() if path not in files}
    config, manifests = settings(given.folder.relative_to(above).as_posix())
    if given.parsed:
        for text in files.values():
            try:
                imports_of(text)
            except FactUnavailable:
                continue
    whole, found = judged(around, {**around, **files}, config, manifests)
    alone = []
    for path in list(files)[:ALONE]:
        others = {**around, **{p: text for p, text in files.items() if p != path}}
        alone.append(1000 * judged(others, {**others, path: files[path]}, config, manifests)[0])
    alone.sort()
    record = {
        "files": len(files),
        "lines": sum(text.count("\n") for text in files.values()),
        "findings": len(found),
        "ms_per_file": round(1000 * whole / len(files), 3),
        "alone_mean_ms": round(statistics.mean(alone), 3),
        "alone_median_ms": round(statistics.median(alone), 3),
        "alone_p95_ms": round(alone[len(alone) * 95 // 100], 3),
        "parsed_before": given.parsed,
    }
    print(json.dumps(record))
    if given.output:
        given.output.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()

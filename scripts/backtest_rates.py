# SPDX-License-Identifier: Apache-2.0
"""Backtests public repositories and stores the counts in docs/backtest/rates.json.

python scripts/backtest_rates.py SLUG=CLONE...
python scripts/backtest_rates.py --meaning SLUG=CLONE...

Each SLUG, such as `huggingface/diffusers`, has its policy and manifest in
`docs/backtest/<last part of SLUG>-policy` (no folder of the repository may have that name); CLONE
is a clone with full history. No text of a repository is stored. With `--keep DIR` the findings of
each run are kept there, to be judged. With `--meaning` the counts are of the rules on what a diff
means (FT2xx, FT4xx) alone, all changes judged as if they had asked for the fast track, and go to
`docs/backtest/meaning.json`.
"""

import argparse
import json
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

from fasttrack.backtest import judge_all, merged_changes, tally
from fasttrack.report.backtest import backtest_json
from fasttrack.workspace import open_workspace

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "backtest"
AS_OF = date(2026, 11, 29)
CHANGES = 400
"""Changes of the first-parent history of the newest commit, per repository."""
MEANING_CHANGES = 150
MEANING = ("FT2", "FT4")


def measure_meaning(slug: str, clone: Path, keep: Path | None) -> dict[str, Any]:
    """What the rules on the meaning of a diff report in one repository."""
    name = slug.rpartition("/")[2]
    workspace = open_workspace(FOLDER, f"{name}-policy")
    changes = merged_changes(clone, f"main~{MEANING_CHANGES}..main")
    start = time.perf_counter()
    every = list(judge_all(clone, workspace, changes, AS_OF, labelled=True))
    judged = [
        replace(one, findings=tuple(f for f in one.findings if f.rule.startswith(MEANING)))
        for one in every
    ]
    alone = [
        one.merged.commit
        for one in every
        if one.findings and all(f.rule.startswith(MEANING) for f in one.findings)
    ]
    text = backtest_json(judged, tally(judged))
    if keep is not None:
        (keep / f"{name}-meaning.json").write_text(text, encoding="utf-8")
    counts = json.loads(text)["counts"]
    return {
        "repository": slug,
        "after": changes[-1].base,
        "up_to": changes[0].commit,
        "changes": len(changes),
        "wall_s": round(time.perf_counter() - start),
        "levels": counts["levels"],
        "rules": counts["rules"],
        "alone": alone,
    }


def measure(slug: str, clone: Path, keep: Path | None) -> dict[str, Any]:
    """Both backtests of one repository: changes in the lane, and all as if labelled."""
    name = slug.rpartition("/")[2]
    workspace = open_workspace(FOLDER, f"{name}-policy")
    policy = workspace.config.policy
    changes = merged_changes(clone, f"main~{CHANGES}..main")
    record: dict[str, Any] = {
        "repository": slug,
        "after": changes[-1].base,
        "up_to": changes[0].commit,
        "changes": len(changes),
        "policy": {
            "folder": f"docs/backtest/{name}-policy",
            "roots": list(policy.roots.allow),
            "budgets": policy.budgets.model_dump(),
            "imports": list(policy.imports),
        },
    }
    for run, labelled in (("in_lane", False), ("all", True)):
        start = time.perf_counter()
        judged = list(judge_all(clone, workspace, changes, AS_OF, labelled=labelled))
        seconds = round(time.perf_counter() - start)
        text = backtest_json(judged, tally(judged))
        if keep is not None:
            (keep / f"{name}-{run}.json").write_text(text, encoding="utf-8")
        counts = json.loads(text)["counts"]
        record["changes_in_lane"] = record.get("changes_in_lane", counts["in_lane"])
        record[run] = {"wall_s": seconds, **_kept(counts)}
    return record


def _kept(counts: Mapping[str, Any]) -> dict[str, Any]:
    return {key: counts[key] for key in ("outcomes", "levels", "rules")}


def main() -> None:
    """Runs every repository that is named and stores the counts."""
    parser = argparse.ArgumentParser(description="backtest public repositories")
    parser.add_argument("repositories", nargs="+", metavar="SLUG=CLONE")
    parser.add_argument("--meaning", action="store_true", help="count FT2xx and FT4xx alone")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep every finding in DIR")
    arguments = parser.parse_args()
    pairs = [item.partition("=") for item in arguments.repositories]
    count = measure_meaning if arguments.meaning else measure
    record = {
        "as_of": AS_OF.isoformat(),
        "repositories": [count(slug, Path(clone), arguments.keep) for slug, _, clone in pairs],
    }
    text = json.dumps(record, indent=1, sort_keys=True) + "\n"
    name = "meaning.json" if arguments.meaning else "rates.json"
    (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

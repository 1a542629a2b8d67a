# SPDX-License-Identifier: Apache-2.0
"""Hostile paths: long, undecodable, looping, of the wrong kind, or written to be shown."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from fasttrack.testing import Content, Gitlink, Repo, Stored, Symlink
from tests.engine import KERNEL, MANIFEST, POLICY, ROOT, SHARED, files
from tests.hostile.case import BAD_INPUT, FAST_TRACK, ORDINARY, REFUSED, Hostile, topic

COMMIT = Gitlink("1" * 40)
ESCAPES = "\x1b[2J\x1b]0;title\x07\u202e\u200b\r\n"
LONG = ROOT + "d" * 200 + "/" + "x/" * 1900 + "m.py"


def _there(
    where: Path, change: Mapping[str, Content], gone: str, put: Mapping[str, Content]
) -> None:
    """The target branch lacks `gone` and has `put` instead."""
    repo = Repo(where)
    before = {path: content for path, content in files().items() if not path.startswith(gone)}
    tip = repo.commit("main", before | dict(put))
    repo.commit("topic", change, parent=tip)


def _replaced(where: Path, gone: str, put: Mapping[str, Content], edit: str = KERNEL) -> None:
    """The change replaces `gone` by `put`, and edits a file elsewhere."""
    topic(where, {p: None for p in files() if p.startswith(gone)} | dict(put) | {edit: "X = 1\n"})


EDIT = {KERNEL: "BLOCK = 64\n"}
_NOISY = {
    f"{ROOT}\u0434{n}{ESCAPES[:4]}.py": f"# \u200b{n}\nimport made_up_{n}\n" for n in range(4_000)
}
CASES = (
    Hostile(
        "4,000 files with several findings each", partial(topic, change=_NOISY), REFUSED, "FT1"
    ),
    Hostile(
        "a path of 4,096 bytes", partial(topic, change={LONG: "X = 1\n"}), FAST_TRACK, "fast-track"
    ),
    Hostile(
        "a name of 60,000 bytes",
        partial(topic, change={ROOT + "n" * 60_000 + ".py": "X = 1\n"}),
        ORDINARY,
        "FT128",
    ),
    Hostile(
        "a path of 2,000 folders",
        partial(topic, change={ROOT + "d/" * 2_000 + "m.py": "X = 1\n"}),
        FAST_TRACK,
        "fast-track",
    ),
    Hostile(
        "paths that are not UTF-8",
        partial(topic, change={f"{ROOT}\udcff\udcfe{n}.py": "X = 1\n" for n in range(50)}),
        REFUSED,
        "FT1",
    ),
    Hostile(
        "control characters in paths",
        partial(topic, change={f"{ROOT}{ESCAPES}.py": "X = 1\n", f"{ESCAPES}": "x\n"}),
        REFUSED,
        "FT1",
    ),
    Hostile(
        "control characters in texts",
        partial(topic, change={KERNEL: f"# {ESCAPES}\nimport {ESCAPES}\n"}),
        REFUSED,
        "FT1",
    ),
    Hostile(
        "control characters in a manifest",
        partial(topic, change={MANIFEST: f"'{ESCAPES}': '{ESCAPES}'\n"}),
        REFUSED,
        "FT301",
    ),
    Hostile(
        "control characters as a manifest's name",
        partial(topic, change={f"manifests/{ESCAPES}.yaml": "a: 1\n"}),
        REFUSED,
        "FT1",
    ),
    Hostile(
        "a config folder that links to itself",
        partial(_there, change=EDIT, gone="manifests/", put={"manifests": Symlink("manifests")}),
        BAD_INPUT,
        "no policy",
    ),
    Hostile(
        "a change that makes the config folder a loop",
        partial(_replaced, gone="manifests/", put={"manifests": Symlink("manifests")}),
        REFUSED,
        "FT1",
    ),
    Hostile(
        "a manifest that links to itself",
        partial(topic, change={MANIFEST: Symlink("foo.yaml")}),
        REFUSED,
        "FT301",
    ),
    Hostile(
        "a manifest that links to a device",
        partial(topic, change={"manifests/bar.yaml": Symlink("/dev/zero")}),
        REFUSED,
        "FT301",
    ),
    Hostile(
        "a policy in force that links to itself",
        partial(_there, change=EDIT, gone=POLICY, put={POLICY: Symlink("policy.yaml")}),
        BAD_INPUT,
        "policy",
    ),
    Hostile(
        "a submodule as a manifest", partial(topic, change={MANIFEST: COMMIT}), REFUSED, "FT301"
    ),
    Hostile(
        "a submodule as a manifest in force",
        partial(_there, change=EDIT, gone=MANIFEST, put={MANIFEST: COMMIT}),
        BAD_INPUT,
        "manifest",
    ),
    Hostile(
        "a submodule as the policy in force",
        partial(_there, change=EDIT, gone=POLICY, put={POLICY: COMMIT}),
        BAD_INPUT,
        "policy",
    ),
    Hostile(
        "a submodule as the config folder",
        partial(_replaced, gone="manifests/", put={"manifests": COMMIT}),
        REFUSED,
        "FT1",
    ),
    Hostile(
        "a submodule as pyproject.toml",
        partial(topic, change=EDIT, before={"pyproject.toml": COMMIT}),
        BAD_INPUT,
        "pyproject",
    ),
    Hostile(
        "a submodule as the roots",
        partial(_replaced, gone=ROOT, put={"engine/foo": COMMIT}, edit=SHARED),
        ORDINARY,
        "FT105",
    ),
    Hostile(
        "a folder as the policy in force",
        partial(_there, change=EDIT, gone=POLICY, put={POLICY + "/a.yaml": "x\n"}),
        BAD_INPUT,
        "no policy",
    ),
    Hostile(
        "a folder as the changed policy",
        partial(_replaced, gone=POLICY, put={POLICY + "/a.yaml": "x\n"}),
        REFUSED,
        "FT119",
    ),
    Hostile(
        "a folder as a manifest",
        partial(_replaced, gone=MANIFEST, put={MANIFEST + "/a.yaml": "x\n"}),
        ORDINARY,
        "FT",
    ),
    Hostile("an empty manifest", partial(topic, change={MANIFEST: ""}), REFUSED, "FT301"),
    Hostile(
        "a mode that git does not know",
        partial(topic, change={KERNEL: Stored("1" * 40, "100777")}),
        ORDINARY,
        "FT",
    ),
    Hostile(
        "a mode that is no file's",
        partial(topic, change={KERNEL: Stored("1" * 40, "777777")}),
        ORDINARY,
        "FT",
    ),
)

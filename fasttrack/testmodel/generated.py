# SPDX-License-Identifier: Apache-2.0
"""Parametrisations that `pytest_generate_tests` asks for, in a module or a `conftest.py`."""

from collections.abc import Sequence

from fasttrack.testmodel import calling
from fasttrack.testmodel.collected import Axis, Test, axis_of
from fasttrack.testmodel.fixtures import Fixtures, wanted_fixtures
from fasttrack.testmodel.follower import Follower
from fasttrack.testmodel.frames import Ended, Exhausted
from fasttrack.testmodel.modules import Files
from fasttrack.testmodel.values import Function, Instance, Module, Opaque

_HOOK = "pytest_generate_tests"


def generated_axes(
    test: Test, fixtures: Fixtures, files: Files, conftests: Sequence[Module], own: Sequence[Axis]
) -> list[Axis]:
    """The parametrisations of a test that hooks add to its own."""
    hooks = [module.names.get(_HOOK) for module in (*conftests, test.module)]
    found: list[Axis] = []
    for hook in hooks:
        if isinstance(hook, Function):
            found += _asked_for(test, fixtures, files, hook, own)
    return found


def _asked_for(
    test: Test, fixtures: Fixtures, files: Files, hook: Function, own: Sequence[Axis]
) -> list[Axis]:
    names = [*wanted_fixtures(test, fixtures, own), *(name for axis in own for name in axis.names)]
    metafunc = Instance(
        Opaque("metafunc", external=True),
        {
            "fixturenames": list(dict.fromkeys(names)), "function": test.function,
            "module": test.module, "cls": test.owner,
        },
    )  # fmt: skip
    follower = Follower(files, files.overrides)
    put_back = files.restore()
    try:
        calling.call(follower, hook, [metafunc], {}, hook.node, hook.scope)
    except (Ended, Exhausted):
        pass
    finally:
        put_back()
    made = ((axis_of(mark), condition) for mark, condition in follower.generated)
    return [Axis(axis.names, None, condition) if condition else axis for axis, condition in made]

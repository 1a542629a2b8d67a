# SPDX-License-Identifier: Apache-2.0
"""Requests and settings: what is refused, with every reason."""

from collections.abc import Callable

import pytest

from fasttrack.errors import InputError
from kimi_k3.engine.acceptance import RejectionSampling
from kimi_k3.engine.drafters import NoDrafter
from kimi_k3.engine.engine import Engine
from kimi_k3.engine.options import EngineConfig
from kimi_k3.engine.request import Request, Sampling
from kimi_k3.engine.speculation import Speculation
from tests.kimi_k3.engine.toy import POSITIONS, Toy, toy_config

OPTIONS = EngineConfig(max_requests=1, pages=6, page_size=4)


def engine(options: EngineConfig = OPTIONS) -> Engine:
    return Engine(toy_config(), Toy(options), options)


def lines(act: Callable[[], object]) -> list[str]:
    with pytest.raises(InputError) as caught:
        act()
    return [str(problem) for problem in caught.value.problems]


REFUSED: dict[str, tuple[Request, list[str]]] = {
    "no prompt": (Request((), 1), ["prompt: saw no token; want at least one"]),
    "ids outside the vocabulary": (
        Request((6, 7, -1, 8, 9, 10, 11), 1),
        ["prompt: saw 7, -1, 8, 9, 10, ...; want ids from 0 to 6, the model's vocabulary"],
    ),
    "nothing to generate": (Request((1,), 0), ["max_tokens: saw 0; want at least 1"]),
    "more positions than the model has": (
        Request((1, 2), 40),
        [
            "max_tokens: saw 2 prompt tokens and 40 more; want at most 40 positions; "
            "fix: max_tokens 39"
        ],
    ),
    "a prompt longer than the model": (
        Request((1,) * 41, 1),
        [
            "max_tokens: saw 41 prompt tokens and 1 more; want at most 40 positions; "
            "fix: a shorter prompt"
        ],
    ),
    "more pages than the engine has": (
        Request((1,) * 20, 6),
        [
            "max_tokens: saw a request of up to 25 positions; want one that needs at most the "
            "engine's 6 pages, not 7; fix: pages 7"
        ],
    ),
    "every sampling value": (
        Request((1,), 1, Sampling(-0.1, -1, 0.0, -1)),
        [
            "temperature: saw -0.1; want a number from 0 to 100",
            "top_k: saw -1; want 0 for all tokens, or how many to keep",
            "top_p: saw 0.0; want a number above 0, at most 1",
            "seed: saw -1; want an integer from 0 to 18446744073709551615",
        ],
    ),
    "sampling values that are no numbers": (
        Request((1,), 1, Sampling(float("nan"), 0, float("nan"), 2**64)),
        ["temperature: saw nan", "top_p: saw nan", "seed: saw 18446744073709551616"],
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_can_not_be_served_is_refused_with_every_reason(case: str) -> None:
    request, wanted = REFUSED[case]
    own = engine()
    got = lines(lambda: own.add(request))
    assert len(got) == len(wanted)
    for line, words in zip(got, wanted, strict=True):
        assert line.startswith(words)
    assert own.idle
    assert own.add(Request((1,), 1)) == 0  # a refused request has no id


def test_generate_refuses_all_requests_at_once_and_runs_none() -> None:
    own = engine()
    got = lines(lambda: own.generate([Request((1,), 1), Request((), 0), Request((9,), 1)]))
    assert [line.split(";")[0] for line in got] == [
        "request 1: prompt: saw no token",
        "request 1: max_tokens: saw 0",
        "request 2: prompt: saw 9",
    ]
    assert own.idle


def test_the_largest_request_that_fits_is_served() -> None:
    (result,) = engine().generate([Request((1,) * 20, 5)])
    assert len(result.tokens) == 5


def test_room_for_the_last_window_ends_with_the_models_positions() -> None:
    """40 positions are 10 pages of 4, however long the draft is."""
    speculation = Speculation(3, NoDrafter(), RejectionSampling())
    fits = EngineConfig(max_requests=1, pages=10, page_size=4, speculation=speculation)
    assert not [*fits.problems(toy_config(), Request((1,), POSITIONS))]
    (problem,) = EngineConfig(pages=6, page_size=4, speculation=speculation).problems(
        toy_config(), Request((1,) * 20, 3)
    )
    assert (problem.want.split(", ")[-1], problem.fix) == ("not 7", "pages 7")


def test_settings_below_one_are_refused_with_every_reason() -> None:
    got = lines(lambda: EngineConfig(0, 0, 0, 0, dcp=0, interleave=-1))
    assert got == [
        "max_requests: saw 0; want at least 1",
        "pages: saw 0; want at least 1",
        "page_size: saw 0; want at least 1",
        "prefill_budget: saw 0; want at least 1",
        "dcp: saw 0; want at least 1",
        "interleave: saw -1; want at least 1",
    ]


def test_caches_have_a_null_slot_and_a_slot_per_position_of_every_window() -> None:
    speculation = Speculation(3, NoDrafter(), RejectionSampling())
    shape = EngineConfig(5, 60, 8, speculation=speculation).cache_shape
    assert (shape.slots, shape.pages, shape.page_size, shape.draft) == (21, 60, 8, 3)


def test_an_engine_sized_for_its_requests_runs_them_side_by_side() -> None:
    requests = [Request((1,) * n, 4) for n in (3, 9, 6)]  # 6, 12 and 9 positions
    sized = EngineConfig(page_size=4).sized_for(toy_config(), requests)
    assert (sized.max_requests, sized.pages) == (3, 2 + 3 + 3)
    few = EngineConfig(max_requests=2, page_size=4).sized_for(toy_config(), requests)
    assert (few.max_requests, few.pages) == (2, 3 + 3)
    assert EngineConfig().sized_for(toy_config(), []).max_requests == 1

# SPDX-License-Identifier: Apache-2.0
"""What a server must tell, and that what it does not tell stays unknown."""

from dataclasses import fields, replace

import pytest

from kimi_k3.decode.deployment import Features, Formats
from kimi_k3.decode.packaged import packaged_manifest

from .deployments import SOUND

FACTS = ("hardware", "tp", "dcp", "max_requests", "draft_tokens", "max_context", "graph_mode")
NO_FORMATS = Formats(None, None, None, None, None)


def test_the_probes_are_those_that_the_manifest_names() -> None:
    named = [(refusal.feature, refusal.probe) for refusal in packaged_manifest().refuses]
    assert sorted(named) == sorted((probe.feature, probe.id) for probe in Features().probes())


def test_every_feature_is_unknown_until_somebody_tells() -> None:
    assert {probe.on for probe in Features().probes()} == {None}
    assert {probe.on for probe in Features.absent().probes()} == {False}


@pytest.mark.parametrize("feature", [one.name for one in fields(Features)])
def test_a_probe_answers_for_its_own_feature_and_says_why(feature: str) -> None:
    on = [p for p in replace(Features.absent(), **{feature: True}).probes() if p.on]
    assert [(p.feature, p.id) for p in on] == [(feature, feature.replace("_", "-"))]
    assert len(on[0].why) > 20


def test_a_sound_server_has_no_unknown_fact() -> None:
    assert list(SOUND.unknown()) == []


@pytest.mark.parametrize("fact", FACTS)
def test_a_fact_that_is_none_is_unknown(fact: str) -> None:
    assert list(replace(SOUND, **{fact: None}).unknown()) == [fact]  # type: ignore[arg-type]


def test_every_format_that_is_none_is_unknown() -> None:
    unknown = list(replace(SOUND, formats=NO_FORMATS).unknown())
    assert unknown == [f"the format of {one.name}" for one in fields(Formats)]

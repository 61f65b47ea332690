"""Studies in words: every name has a title, a warning and its place in the two choosers."""

from __future__ import annotations

import pytest

from core.lab.domains import (
    DOMAINS,
    NETWORKS,
    TITLES,
    domains,
    kind_of,
    kinds_of,
    study_of,
    title_of,
    words_of,
)
from core.lab.sources import NAMES, domain_of
from core.lab.study import STUDIES


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_a_domain_and_a_network_and_back(name: str) -> None:
    domain, kind = domain_of(name), kind_of(name)
    assert title_of(name) == f"{TITLES[domain]}, {NETWORKS[kind]}"
    if name in STUDIES:
        assert study_of(domain, kind) == name
        assert kind in kinds_of(domain) and domain in domains()


def test_a_network_that_a_domain_lacks_becomes_its_first() -> None:
    assert kinds_of("phantom") == ("unet",)
    assert study_of("phantom", "sinet") == "phantom"
    with pytest.raises(ValueError, match="liver"):
        study_of("liver", "unet")


def test_every_domain_warns_of_what_it_has_not_seen() -> None:
    assert set(DOMAINS) == set(TITLES)
    for name, words in DOMAINS.items():
        assert words.warning.endswith(".") and "only" in words.warning, name
    for medical in ("polyp", "skin"):
        assert "no medical device" in DOMAINS[medical].warning
    assert "no other fire" in DOMAINS["fire"].warning
    assert words_of("made-up").warning == "" and words_of("skin-sinet") is DOMAINS["skin"]

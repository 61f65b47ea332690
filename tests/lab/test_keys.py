"""Keys: equal settings share a job, different settings never do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.lab.keys import settings_key
from core.settings import CoatSettings, CoverageSettings

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(plain, plain)
def test_values_that_print_differently_have_different_keys(a, b):
    # == calls 1 and 1.0 and True equal; a job's settings that differ in type may well behave differently
    assert (settings_key("job", a) == settings_key("job", b)) == (
        repr(sorted_maps(a)) == repr(sorted_maps(b))
    )


def sorted_maps(value):
    if isinstance(value, dict):
        return {key: sorted_maps(value[key]) for key in sorted(value)}
    return [sorted_maps(part) for part in value] if isinstance(value, list) else value


def test_the_order_in_which_a_mapping_was_written_does_not_matter():
    assert settings_key("job", {"a": 1, "b": 2}) == settings_key("job", {"b": 2, "a": 1})


def test_one_changed_knob_changes_the_key():
    assert settings_key("job", CoverageSettings()) == settings_key("job", CoverageSettings())
    assert settings_key("job", CoverageSettings()) != settings_key("job", CoverageSettings(alpha=0.2))
    assert settings_key("job", CoverageSettings()) != settings_key("other job", CoverageSettings())
    assert settings_key("job", CoverageSettings(), CoatSettings()) != settings_key("job", CoverageSettings())


def test_two_classes_with_the_same_fields_are_not_the_same_settings():
    @dataclass(frozen=True)
    class One:
        seed: int = 0

    @dataclass(frozen=True)
    class Two:
        seed: int = 0

    assert settings_key("job", One()) != settings_key("job", Two())


def test_a_key_is_the_same_in_every_process():
    recorded = "3f081239ebc5e77c448066246975f0a7"  # first half; from another process
    assert settings_key("job", 1, "a", Path("x"), b"y")[:32] == recorded


def test_an_array_is_refused_rather_than_keyed_by_its_abbreviated_text():
    with pytest.raises(TypeError, match="ndarray .* digest"):
        settings_key("job", np.zeros(3))

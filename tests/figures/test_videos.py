from __future__ import annotations

import numpy as np
import pytest

from core.figures.videos import videos_chart
from tests.figures.specs import layers_of, said, spec_of, title_of

BY_VIDEO = {"CRC": np.array([0.7, 0.85, 0.95]), "COAT": np.array([0.88, 0.91, 0.93])}
BY_FRAME = {"CRC": np.linspace(0.86, 0.94, 101), "COAT": np.linspace(0.89, 0.91, 101)}


def test_every_draw_has_a_tick_and_every_method_its_bar():
    spec = spec_of(videos_chart(BY_VIDEO, BY_FRAME, 0.1))
    ticks = layers_of(spec, "tick")[0]["data"]["values"]
    assert [r["coverage"] for r in ticks if r["method"] == "CRC"] == BY_VIDEO["CRC"].tolist()
    bar = layers_of(spec, "bar")[0]["data"]["values"][0]
    assert (bar["coverage"], bar["to"]) == (0.864, 0.936)


def test_words_count_the_draws_below_the_promise():
    spec = spec_of(videos_chart(BY_VIDEO, BY_FRAME, 0.1))
    assert "CRC covers 70 % to 95 %; 2 of 3 draws stay below 90 %" in title_of(spec)
    assert "COAT by video 88 % to 93 %" in said(spec)


@pytest.mark.parametrize(
    ("by_video", "by_frame"),
    [
        (BY_VIDEO, {"CRC": BY_FRAME["CRC"]}),
        ({"CRC": np.array([1.2])}, {"CRC": np.array([0.9])}),
        ({"CRC": np.array([])}, {"CRC": np.array([0.9])}),
    ],
)
def test_what_cannot_be_drawn_is_refused(by_video, by_frame):
    with pytest.raises(ValueError, match=r"Draws by video|share from 0 to 1"):
        videos_chart(by_video, by_frame, 0.1)

"""Shift on the coverage page: a warning beside the promise of an upload that does not look like the study's images, and phantoms that are damaged on
purpose, to watch coverage fall.

It draws; `core.lab.shift_monitor` and `shift_coverage` compute, `shift_words` finds the words. The damaged phantoms are recorded: no slider runs
a network.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

import numpy as np
import streamlit as st
import torch

from core.conformal.words import percent
from core.images import to_display
from core.lab.promise import Promise, promise
from core.lab.shift_coverage import UnderShift, damaged, damages, recorded, under_shift
from core.lab.shift_damage import COMMAND, STUDY, frames
from core.lab.shift_monitor import MOST, Monitor, load_monitor, there_is
from core.lab.shift_words import NAMES, advice, headline, measured, quiet, score_text, verdict, warning
from core.lab.study import Split
from pages.parts import shelf, uploads

FIRST = 5
"""Severity that is shown first."""


def beside(shown: Promise, mine: list[uploads.Upload], chosen: str, split: Split) -> None:
    """Beside the promise of an upload: a warning where it, or the uploads together, score above the limit; else one quiet line."""
    if not mine:
        st.session_state.pop("shift-heard", None)  # what was heard goes with the files
    if chosen not in {u.id for u in mine} or not there_is(split.study.name):
        return
    monitor = load_monitor(split.study.name)
    others = [u for u in mine if u.id != chosen][-(MOST - 1) :]
    try:
        first = _heard(monitor, shown.image, _digest(shown.image))
    except ValueError as problem:
        st.caption(str(problem))
        return
    rest = [h for u in others if (h := _heard_upload(monitor, u)) is not None]
    shifts = [monitor.judge(first[None])]
    if rest:
        shifts.append(monitor.judge(torch.stack([first, *rest])))
    loud = [s for s in shifts if s.warns]
    if not loud:
        st.caption(quiet(shifts[-1]))
        return
    st.warning(f"{warning(loud[0], split.study.name, split.alpha)} {advice()}", icon=":material/warning:")


def _digest(image: np.ndarray) -> str:
    return hashlib.sha256(image.tobytes()).hexdigest()[:16]


def _heard_upload(monitor: Monitor, item: uploads.Upload) -> torch.Tensor | None:
    """What is heard of an upload's middle slice; None for one that cannot be judged."""
    kept = st.session_state.setdefault("shift-heard", {})
    key = (monitor.domain, item.picture.digest)
    if key in kept:
        return kept[key]  # type: ignore[no-any-return]
    try:
        return _heard(monitor, uploads.thumbnail_of(item), item.picture.digest)
    except ValueError:  # too narrow: its own promise says so when it is looked at
        return None


def _heard(monitor: Monitor, image: np.ndarray, digest: str) -> torch.Tensor:
    """What is heard of an image, from this session's memory: two numbers, no pixels."""
    kept: dict[tuple[str, str], torch.Tensor] = st.session_state.setdefault("shift-heard", {})
    key = (monitor.domain, digest)
    if key not in kept:
        kept[key] = monitor.hear(image)
        while len(kept) > 200:
            kept.pop(next(iter(kept)))
    return kept[key]


@lru_cache(maxsize=64)
def _seen(alpha: float, seed: int, delta: float | None, corruption: str) -> UnderShift:
    return under_shift(shelf.split(STUDY, alpha, seed, delta), damaged(corruption), load_monitor(STUDY))


def show(split: Split) -> None:
    """The demonstration; behind a switch, so that the page does not wait for it."""
    st.subheader("When the next images are not drawn alike")
    if not recorded():
        st.info(
            f"The damaged pictures are not recorded yet. Make them with: `{COMMAND}`",
            icon=":material/info:",
        )
        return
    st.markdown(
        "Every promise on this page assumes that the next image is drawn like those that calibrate. Here that is broken on purpose: thresholds "
        "stay as they were calibrated on clean pictures, and the pictures that follow are damaged. Drawn pictures stand in, since no real one ships."
    )
    if st.toggle("Corrupt the test images", key="shift-on", bind="query-params"):
        _demonstration(split.alpha, split.seed, split.delta)


@st.fragment
def _demonstration(alpha: float, seed: int, delta: float | None) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        corruption = str(
            st.selectbox(
                "Damage", damages(), format_func=NAMES.__getitem__, key="shift-damage", bind="query-params", width=220
            )
        )  # fmt: skip
        u = _seen(alpha, seed, delta, corruption)
        first = FIRST if FIRST in u.severities else u.severities[-1]
        severity = st.select_slider(
            "Severity", u.severities, first, key="shift-severity", bind="query-params", width=260,
            help="0 is clean; the levels are ImageNet-C's.",
        )  # fmt: skip
        if st.button("Another picture", icon=":material/skip_next:", key="shift-next"):
            st.session_state["shift-number"] = st.session_state.get("shift-number", 0) + 1
    k = u.severities.index(severity)
    st.markdown(f"**{headline(u, severity)}** {verdict(u, severity)}")
    cells = st.columns(3, gap="medium")
    for cell, (label, values) in zip(
        cells, (("Coverage", u.mean_coverage), ("Set area", u.mean_area)), strict=False
    ):
        crc, coat = (percent(float(values[m][k])) for m in ("CRC", "COAT"))
        cell.metric(
            f"{label}, CRC → COAT",
            f"{crc} → {coat}",
            help=f"Mean over {u.single.shape[1]} pictures that calibrate nowhere.",
        )
    middle = float(np.median(u.together[k]))
    cells[2].metric(
        f"Shift score of {MOST} pictures", f"{score_text(middle)}, limit {score_text(u.limit[1])}",
        help=f"Median over groups of {MOST} pictures; about 1 for images like the reference.",
    )  # fmt: skip
    left, right = st.columns([2, 3], gap="medium")
    with left:
        _picture(u, k, corruption, alpha, seed, delta)
    with right:
        _charts(u, severity)
    if middle > u.limit[1]:
        shift = load_monitor(STUDY).judge(damaged(corruption).heard[k][:MOST])
        if shift.warns:
            st.caption(f"What {MOST} of these pictures would show beside the promise, were they uploaded:")
            st.warning(warning(shift, STUDY, alpha), icon=":material/warning:")
    st.caption(measured(load_monitor(STUDY)))


def _picture(u: UnderShift, k: int, corruption: str, alpha: float, seed: int, delta: float | None) -> None:
    """One picture under this damage with both outlines and the truth; the networks saw all its severities when it was chosen."""
    from core.figures.outlines import draw_outlines

    place = int(st.session_state.get("shift-number", 0)) % u.single.shape[1]
    number = u.by_fall[place]
    scored, mask = frames(number, corruption, u.severities)
    p = promise(scored[u.severities[k]], mask, alpha=alpha, seed=seed, delta=delta)
    crc, coat = (percent(float(u.coverage[m][k][number])) for m in ("CRC", "COAT"))
    drawn = draw_outlines(p.image, p.mask, {m: p.set_of(m) for m in ("CRC", "COAT")})
    words = f"Picture {place + 1} of {u.single.shape[1]}: CRC (orange) finds {crc}, COAT (blue) {coat}. White is the lesion."
    st.image(
        to_display(drawn),
        caption=words,
        width="stretch",
        alt=f"A drawn picture under {NAMES[corruption]}. {words}",
    )


def _charts(u: UnderShift, severity: int) -> None:
    from core.figures.shift_coverage import coverage_under_shift
    from core.figures.sparse_shift import shift_strip
    from core.figures.temperature_frame import description, sentence_of

    chart = coverage_under_shift(
        u.severities, u.mean_coverage, u.mean_area, u.alpha, severity, NAMES[u.corruption]
    )
    st.altair_chart(chart, width="stretch", key="shift-coverage")
    shifted = {f"severity {s}": u.together[k].tolist() for k, s in enumerate(u.severities) if s}
    strip = shift_strip(u.together[0].tolist(), shifted, limit=u.limit[1], images=MOST)
    st.plotly_chart(
        strip, width="stretch", key="shift-strip", alt=description(strip), config={"displayModeBar": False}
    )
    st.caption(sentence_of(strip))

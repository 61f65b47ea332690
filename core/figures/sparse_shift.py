"""λ's wish to move as a detector of shift: ROC curves by corruption, and scores of clean and shifted batches with the limit of the warning."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from core.figures.frame import count, listed
from core.figures.sparse_look import (
    BEFORE,
    FAMILY_COLOURS,
    FAMILY_DASHES,
    FAMILY_SHAPES,
    checked_shares,
    known,
    lambda_axis,
    lambda_span,
    legend_above,
    plain_axis,
)
from core.figures.sparse_words import number, rate
from core.figures.temperature_frame import GREY, finished, plotly

LEAST = 1e-3
"""Scores below this are drawn at this."""


def shift_roc(
    curves: Mapping[str, tuple[np.ndarray, np.ndarray]],
    auroc: Mapping[str, float],
    *,
    families: Mapping[str, str] | None = None,
    severity: int = 3,
    images: int = 16,
    compact: bool = False,
    height: int = 0,
) -> Any:
    """ROC curves of the shift score at one severity.

    Args:
        curves: Corruption in words -> (false-alarm rates, detection rates), both rising from 0 to 1 (`core.tacsc.shift_score.roc`).
        auroc: Corruption -> area under its curve; NaN is left out of the words.
        families: Corruption -> one of `sparse_look.FAMILIES`; others are grey.
        severity: For the words.
        images: Images that a score looks at together, for the words.
        compact: For about 420 px.
        height: Height in pixels; 0 takes 430.

    Returns:
        A Plotly figure.

    Raises:
        ValueError: No curve, or rates outside [0, 1] or of unlike length.
    """
    go, _ = plotly()

    if not curves:
        raise ValueError("There is no ROC curve to draw.")
    of = families or {}
    figure = go.Figure(
        go.Scatter(
            x=[0, 100], y=[0, 100], mode="lines", line={"color": GREY, "width": 1.5, "dash": "dot"}, name="chance", hoverinfo="skip",
            showlegend=False,
        )
    )  # fmt: skip
    seen: set[str] = set()
    for name, (false, true) in curves.items():
        x = checked_shares(false, (None,), f"false alarms under {name}")
        y = checked_shares(true, (len(x),), f"detections under {name}")
        family = of.get(name, "other")
        key = family if families else name
        figure.add_trace(
            go.Scatter(
                x=known(100 * x), y=known(100 * y), mode="lines", legendgroup=key, showlegend=key not in seen,
                line={"color": FAMILY_COLOURS.get(family, GREY), "dash": FAMILY_DASHES.get(family, "solid"), "width": 2.2}, name=key,
                hovertemplate=f"{name}: %{{y:.0f}} % found at %{{x:.0f}} % false alarms{_auc(auroc.get(name))}<extra></extra>",
            )
        )  # fmt: skip
        seen.add(key)
    tall = height or 430
    sentence = _roc_sentence(auroc, curves, of, severity, images)
    each = "; ".join(f"{c} {a:.3f}" for c in curves if math.isfinite(a := float(auroc.get(c, math.nan))))
    said = f"ROC curves of the shift score, {count(images, 'image')} at a time, severity {severity}. "
    said += f"Area under the curve: {each or 'unknown'}. {sentence}"
    plain = {"range": [-1, 101], "nticks": 6, "ticksuffix": "\u00a0%"}
    return finished(
        figure, said, tall, sentence, margin={"l": 56, "r": 12, "t": 56 if compact else 40, "b": 46}, hovermode="closest",
        xaxis=plain_axis("false alarms on clean images", **plain), yaxis=plain_axis("shifted images found", **plain),
        legend=legend_above(6, tall - (56 if compact else 40) - 46),
    )  # fmt: skip


def _auc(value: float | None) -> str:
    return "" if value is None or not math.isfinite(value) else f"<br>area {value:.3f}"


def _roc_sentence(
    auroc: Mapping[str, float], curves: Mapping[str, Any], families: Mapping[str, str], severity: int, images: int
) -> str:  # fmt: skip
    there = {c: float(auroc[c]) for c in curves if math.isfinite(float(auroc.get(c, math.nan)))}
    if not there:
        return "The area under the curve is not known."
    groups: dict[str, list[float]] = {}
    for c, a in there.items():
        groups.setdefault(families.get(c, ""), []).append(a)
    worst = min(there, key=there.__getitem__)
    means = [
        f"{np.mean(v):.2f} for {family}" if family else f"{np.mean(v):.2f} for the others"
        for family, v in groups.items()
    ]
    if set(groups) == {""}:
        means = [f"{np.mean(list(there.values())):.2f}"]
    low = f"; the hardest is {worst} with {there[worst]:.2f}" if len(there) > 1 else ""
    return f"At severity {severity}, {count(images, 'image')} at a time, the mean area under the ROC is {listed(means)}{low}."


def shift_strip(
    clean: Sequence[float],
    shifted: Mapping[str, Sequence[float]],
    *,
    limit: float | None = None,
    families: Mapping[str, str] | None = None,
    here: float | None = None,
    images: int = 16,
    compact: bool = False,
    height: int = 0,
) -> Any:
    """Scores of clean and of shifted batches, one row each on a logarithmic axis, with the share above the limit.

    Args:
        clean: Scores of clean batches, at least 0 (about 1 for images like the reference).
        shifted: Row in words (a corruption, or "severity 3") -> scores; a row may be empty.
        limit: Score above which the page warns; None draws none.
        families: Row -> family, as in `shift_roc`.
        here: Score of the images on the screen, drawn as a line of its own.
        images: Images in a batch, for the words.
        compact: For about 420 px.
        height: Height in pixels; 0 follows the number of rows.

    Returns:
        A Plotly figure; `sentence_of` says how many clean and shifted batches lie above the limit.

    Raises:
        ValueError: No clean score, or scores that are no numbers or negative.
    """
    go, _ = plotly()

    rows = {
        "clean": np.asarray(clean, np.float64),
        **{k: np.asarray(v, np.float64) for k, v in shifted.items()},
    }
    for name, v in rows.items():
        if v.ndim != 1 or not np.isfinite(v).all() or (v < 0).any():
            raise ValueError(f"Scores are numbers from 0 up, in one row; those of {name} are not.")
    if not len(rows["clean"]):
        raise ValueError("The strip needs the scores of clean batches to compare with.")
    of = families or {}
    figure = go.Figure()
    seen: set[str] = set()
    for k, (name, v) in enumerate(rows.items()):
        family = of.get(name, "")
        colour = GREY if k == 0 else FAMILY_COLOURS.get(family, BEFORE)
        mark = {
            "color": colour,
            "symbol": "circle" if k == 0 else FAMILY_SHAPES.get(family, "circle"),
            "size": 7,
            "opacity": 0.55,
        }
        at = k + 0.28 * np.sin(2.4 * np.arange(len(v)))
        figure.add_trace(
            go.Scatter(
                x=known(np.maximum(v, LEAST)), y=known(at), mode="markers", marker=mark, name=family or name,
                showlegend=bool(family) and family not in seen,
                legendgroup=family or name, hovertemplate=f"{name}: score %{{x:.3g}}<extra></extra>",
            )
        )  # fmt: skip
        seen.add(family)
        if len(v):
            figure.add_trace(_median(go, name, float(np.median(v)), k, colour))
    extra = [x for x in (limit, here) if x is not None]
    span = lambda_span([*np.maximum(np.concatenate(list(rows.values())), LEAST).tolist(), *extra])
    named = bool(seen - {""})
    top, below = (34 if named else 12) + 24, 48
    tall = height or top + below + (34 if compact else 30) * len(rows)
    for at, words, dash in ((limit, "warns from", "dash"), (here, "these images", "solid")):
        if at is not None:
            figure.add_vline(x=at, line={"color": GREY, "width": 2.5, "dash": dash})
            late = math.log(at / span[0]) > 0.6 * math.log(span[1] / span[0])
            figure.add_annotation(
                x=math.log10(at), y=1, yref="paper", yanchor="bottom", text=f"{words} {number(at)}", showarrow=False, font={"size": 13},
                xanchor="right" if late else "left", yshift=2 if at == limit else -16,
            )  # fmt: skip
    names = [f"{n}, {_above(v, limit)} above" if limit is not None and len(v) else n for n, v in rows.items()]
    sentence = _strip_sentence(rows, limit, here, images)
    medians = [f"{n} {number(float(np.median(v)))}" if len(v) else f"{n} none" for n, v in rows.items()]
    said = (
        f"Dots of the shift score on a logarithmic axis, one a batch of {count(images, 'image')}, a row for clean and for "
        f"{listed(list(shifted)) or 'none'}. Medians: {', '.join(medians)}. {sentence}"
    )
    return finished(
        figure, said, tall, sentence, margin={"l": 8, "r": 12, "t": top, "b": below}, hovermode="closest", showlegend=named,
        xaxis=lambda_axis(span, "score, 1 is like the reference", 5 if compact else 7),
        yaxis=plain_axis(
            range=[len(rows) - 0.5, -0.5], showgrid=False, tickvals=list(range(len(rows))), ticktext=names, ticks="outside", ticklen=4,
            tickcolor="rgba(0,0,0,0)",
        ), legend=legend_above(26, tall - top - below),
    )  # fmt: skip


def _median(go: Any, name: str, value: float, k: int, colour: str) -> Any:
    return go.Scatter(
        x=[max(value, LEAST)] * 2, y=[k - 0.36, k + 0.36], mode="lines", line={"color": colour, "width": 4}, showlegend=False, name="median",
        hovertemplate=f"{name}: median {value:.3g}<extra></extra>",
    )  # fmt: skip


def _above(scores: np.ndarray, limit: float) -> str:
    return f"{100 * float((scores > limit).mean()):.0f}\u00a0%"


def _strip_sentence(
    rows: Mapping[str, np.ndarray], limit: float | None, here: float | None, images: int
) -> str:
    every = [v for k, v in rows.items() if k != "clean" and len(v)]
    other = np.concatenate(every) if every else np.zeros(0)
    if limit is None:
        said = f"The median score is {number(float(np.median(rows['clean'])))} on clean batches"
        return said + (f" and {number(float(np.median(other)))} on shifted ones." if len(other) else ".")
    said = f"Above the limit of {number(limit)} lie {rate(float((rows['clean'] > limit).mean()))} of the clean batches of {count(images, 'image')}"
    said += f" and {rate(float((other > limit).mean()))} of the shifted ones." if len(other) else "."
    if here is not None:
        said += f" These images score {number(here)}, {'above' if here > limit else 'not above'} it."
    return said

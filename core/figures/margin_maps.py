"""Confidence and errors of one image as pictures: arrays in, display-ready RGB arrays out, and the colour bar that goes with them.

The scale is perceptually ordered and safe for colour-blind eyes (dark is unsure, bright is sure). Errors are hatched and outlined.
"""

from __future__ import annotations

import math

import numpy as np
from PIL import Image, ImageColor

from core.figures.altair_figure import Figure
from core.figures.frame import figure, layer, percent, quantity
from core.figures.outlines import border
from core.images.display import to_display

SCALES = ("doubt", "linear")
"""Confidence in equal steps of log(1 - confidence), so that 99 % and 99.99 % differ to the eye, or in equal steps of itself."""


NINES = 4
"""The scale of doubt ends at 1 - 10^-4; what is surer looks the same."""

SURER = ("#0B1030", "#26386E", "#4A5F83", "#75818A", "#A59F83", "#D3BF6B", "#FBE58A")
"""Dark blue (unsure) over grey to pale yellow (sure): lightness rises evenly, and no two differ by red against green."""

OUT = (138, 143, 150)
WRONG, UNSURE = "#D55E00", "#F0E442"


def confidence_map(
    confidence: np.ndarray,
    *,
    truth: np.ndarray | None = None,
    ignore: np.ndarray | None = None,
    scale: str = "doubt",
    classes: int = 2,
    side: int = 384,
) -> np.ndarray:
    """How sure a network is of each pixel.

    Args:
        confidence: `(H, W)` largest probability, 1/K to 1.
        truth: `(H, W)` labels; their outlines are drawn in white with a dark edge.
        ignore: `(H, W)` bool; these pixels are grey.
        scale: One of `SCALES`.
        classes: K; the scale starts at 1/K.
        side: The long side is enlarged to at least this many pixels, without smoothing.

    Returns:
        `(h, w, 3)` uint8 for `st.image`.

    Raises:
        ValueError: Shapes differ, an unknown scale, NaN, or a confidence outside [0, 1].
    """
    p = np.asarray(confidence, float)
    _same(p.shape, truth=truth, ignore=ignore)
    if not ((p >= 0) & (p <= 1 + 1e-6)).all():
        raise ValueError(
            "A confidence lies outside 0 to 1 or is not a number; give the largest probability of each pixel."
        )
    rgb = _painted(_along(p, scale, classes))
    if ignore is not None:
        rgb[ignore] = OUT
    canvas = _enlarged(rgb, side)
    if truth is not None:
        _outline(canvas, truth, ignore, canvas.shape[0] // p.shape[0])
    return to_display(canvas)


def error_map(
    rgb: np.ndarray,
    predicted: np.ndarray,
    truth: np.ndarray,
    confidence: np.ndarray,
    *,
    ignore: np.ndarray | None = None,
    sure: float = 0.9,
    side: int = 384,
) -> np.ndarray:
    """Where a network is wrong, and where it was sure of it: errors dotted, sure errors (confidence of at least `sure`) hatched and outlined.

    Args:
        rgb: `(H, W, 3)` picture, or anything that `to_display` takes of that height and width; drawn in pale grey.
        predicted: `(H, W)` labels.
        truth: `(H, W)` labels; outlined in white with a dark edge.
        confidence: `(H, W)` largest probability.
        ignore: `(H, W)` bool; nothing is marked there.
        sure: From which confidence on an error counts as sure.
        side: As in `confidence_map`.

    Returns:
        `(h, w, 3)` uint8.

    Raises:
        ValueError: Shapes differ.
    """
    y, t, p = np.asarray(predicted), np.asarray(truth), np.asarray(confidence, float)
    base = to_display(rgb)
    _same(base.shape[:2], predicted=y, truth=t, confidence=p, ignore=ignore)
    wrong = (y != t) & (True if ignore is None else ~ignore)
    certain = wrong & (p >= sure)
    grey = np.asarray(Image.fromarray(base).convert("L"), float)
    pale = np.repeat((70 + 0.6 * grey).clip(0, 255)[..., None], 3, 2).astype(np.uint8)
    canvas = _enlarged(pale, side)
    k = canvas.shape[0] // y.shape[0]
    for where, colour in ((wrong & ~certain, UNSURE), (certain, WRONG)):
        big = _grown(where, k)
        canvas[big] = (0.45 * canvas[big] + 0.55 * np.array(ImageColor.getrgb(colour))).astype(np.uint8)
    rows, cols = np.mgrid[: canvas.shape[0], : canvas.shape[1]]
    canvas[_grown(certain, k) & ((rows + cols) % 9 < 2)] = (20, 20, 20)
    canvas[_grown(wrong & ~certain, k) & (rows % 7 < 2) & (cols % 7 < 2)] = (20, 20, 20)
    canvas[border(_grown(certain, k), 2)] = ImageColor.getrgb("#7A2E00")
    _outline(canvas, t, ignore, k)
    return to_display(canvas)


def maps_words(
    predicted: np.ndarray,
    truth: np.ndarray,
    confidence: np.ndarray,
    *,
    ignore: np.ndarray | None = None,
    sure: float = 0.9,
) -> str:
    """Both maps in one sentence with the numbers, for captions and alt text: share wrong, share sure, sure of what is wrong."""
    y, t, p = np.asarray(predicted), np.asarray(truth), np.asarray(confidence, float)
    _same(y.shape, truth=t, confidence=p, ignore=ignore)
    kept = np.ones(y.shape, bool) if ignore is None else ~ignore
    n = int(kept.sum())
    if n == 0:
        return "No pixel is counted."
    wrong, certain = (y != t) & kept, (p >= sure) & kept
    both = int((wrong & certain).sum())
    share = f"{percent(both / int(wrong.sum()))} of its errors" if wrong.any() else "no error"
    right = f"{percent(1 - both / int(certain.sum()))} of the time" if certain.any() else "nowhere"
    return (
        f"Wrong in {percent(float(wrong.sum()) / n)} of {n:,} pixels. At least {percent(sure)} sure in {percent(float(certain.sum()) / n)} of them"
        + (f", and right there {right}; it was that sure of {share}." if certain.any() else ".")
    )


def confidence_bar(*, scale: str = "doubt", classes: int = 2, height: int = 64) -> Figure:
    """The colour bar of `confidence_map` with its ticks, for `st.altair_chart`.

    Args:
        scale: One of `SCALES`.
        classes: K.
        height: Height in pixels.
    """
    ends = _ticks(scale, classes)
    low, high = (
        round(_place(1 / classes, scale), 5),
        _place(1 - 10.0**-NINES if scale == "doubt" else 1.0, scale),
    )
    steps = np.linspace(low, high, 65)
    painted = _painted(np.linspace(0, 1, 64)[None])[0]
    rows = [
        {"x": steps[i], "x2": steps[i + 1], "c": "#" + "".join(f"{int(v):02x}" for v in painted[i])}
        for i in range(64)
    ]
    words = {round(_place(p, scale), 5): text for p, text in ends.items()}
    label = " : ".join([*(f"datum.value === {at!r} ? {text!r}" for at, text in words.items()), "''"])
    axis = {
        "title": "confidence: dark is unsure",
        "values": list(words),
        "labelExpr": label,
        "grid": False,
        "labelOverlap": False,
        "labelFlush": True,
    }
    x = {"scale": {"domain": [low, high], "nice": False, "zero": False}, "axis": axis}
    colour = {"field": "c", "type": "nominal", "scale": None, "legend": None}
    bar = layer(
        rows,
        {"type": "rect", "opacity": 1, "strokeWidth": 1},
        {"x": quantity("x", **x), "x2": {"field": "x2"}, "color": colour},
    )
    steps_in_words = (
        "equal steps for 90, 99 and 99.9 percent" if scale == "doubt" else "equal steps of confidence"
    )
    said = f"Colour bar of confidence from {percent(1 / classes)}, dark, to {list(ends.values())[-1]}, bright; {steps_in_words}."
    return figure([bar], None, said, height)


def _place(p: float, scale: str) -> float:
    """A confidence on its scale: -log10 of the doubt, or itself."""
    if scale not in SCALES:
        raise ValueError(f"The scale of confidence is {' or '.join(map(repr, SCALES))}, not {scale!r}.")
    return -math.log10(max(1 - p, 10.0**-NINES)) if scale == "doubt" else p


def _along(p: np.ndarray, scale: str, classes: int) -> np.ndarray:
    """Confidence as a share of the scale, 0 at 1/K."""
    low, high = _place(1 / classes, scale), _place(1.0, scale)
    at = -np.log10(np.maximum(1 - p, 10.0**-NINES)) if scale == "doubt" else p
    return np.clip((at - low) / (high - low), 0.0, 1.0)


def _painted(share: np.ndarray) -> np.ndarray:
    """`(H, W)` shares -> `(H, W, 3)` uint8."""
    stops = np.array([ImageColor.getrgb(c) for c in SURER], float)
    at = np.linspace(0, 1, len(stops))
    return np.stack([np.interp(share, at, stops[:, c]) for c in range(3)], -1).round().astype(np.uint8)


def _ticks(scale: str, classes: int) -> dict[float, str]:
    start = {1 / classes: percent(1 / classes)}
    if scale == "linear":
        return start | {p: percent(p) for p in (0.6, 0.7, 0.8, 0.9, 1.0) if p > 1 / classes + 0.05}
    return (
        start
        | {1 - 10.0**-k: f"{100 * (1 - 10.0**-k):.6g}\u00a0%" for k in range(1, NINES)}
        | {1 - 10.0**-NINES: "99.99\u00a0% +"}
    )


def _grown(where: np.ndarray, k: int) -> np.ndarray:
    """A mask enlarged k times, pixel by pixel."""
    return np.repeat(np.repeat(where, k, 0), k, 1)


def _enlarged(rgb: np.ndarray, side: int) -> np.ndarray:
    """Enlarged a whole number of times, until the long side has so many pixels."""
    k = max(1, -(-side // max(rgb.shape[:2])))
    return _grown(rgb, k).copy()


def _outline(canvas: np.ndarray, truth: np.ndarray, ignore: np.ndarray | None, k: int) -> None:
    """Each class's border but the background's, a white line with a dark edge."""
    from scipy.ndimage import binary_dilation

    labels = np.asarray(truth)
    for c in [c for c in np.unique(labels) if c != 0]:
        inside = (labels == c) & (True if ignore is None else ~ignore)
        line = border(_grown(inside, k), max(1, canvas.shape[0] // 250))
        edge = binary_dilation(line) & ~line
        canvas[edge] = (canvas[edge] * 0.35).astype(np.uint8)
        canvas[line] = (255, 255, 255)


def _same(shape: tuple[int, ...], **arrays: np.ndarray | None) -> None:
    """Refuse arrays of another size than the picture.

    Raises:
        ValueError: The first one that differs is named with both sizes.
    """
    for name, a in arrays.items():
        if a is not None and np.shape(a) != shape:
            raise ValueError(f"{name} has size {np.shape(a)} and the picture {shape}; they must be the same.")

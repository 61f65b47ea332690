"""What the charts of a study say in words: titles and alt texts with the numbers of the picture."""

from __future__ import annotations

import numpy as np

from core.figures.frame import LIMIT, chance, count, listed, percent, promised


def price(area: dict[str, float] | None, methods: list[str]) -> str:
    """What the methods mark of a test image; nothing when that is not known."""
    priced = [m for m in methods if area and m in area]
    if not area or not priced:
        return ""
    first, *others = [
        f"{m} marks {percent(area[m])}" if m == priced[0] else f"{m} {percent(area[m])}" for m in priced
    ]
    return f"The price: {listed([first + ' of a test image', *others])}."


def strip_words(
    values: dict[str, np.ndarray],
    order: np.ndarray,
    parts: np.ndarray,
    alpha: float,
    area: dict[str, float] | None,
    empty: int,
) -> tuple[str, str]:
    """Title and alt text of the strip, about the test images (about all, where none is shown)."""
    tested = order[parts[order] == "test"]
    judged, kind = (tested, "test image") if len(tested) else (order, "image")
    goal = 1 - alpha
    miss = min(0.2, goal / 2)
    far = {m: int((v[judged] < goal - miss).sum()) for m, v in values.items()}
    (first, n), *others = far.items()
    sentence = (
        f"{n} of {count(len(judged), kind)} {'lies' if n == 1 else 'lie'} over {100 * miss:.0f} points below the {promised(alpha)} promise "
        f"under {first}, {listed([f'{k} under {m}' for m, k in others])}."
    )
    means = listed([f"{percent(v[judged].mean())} under {m}" for m, v in values.items()])
    lowest = listed([f"{percent(v[judged].min())} under {m}" for m, v in values.items()])
    said = (
        f"Strip chart of {count(len(order), 'image')}, one dot an image and method, sorted by coverage under {first}. {sentence} "
        f"The mean share of the lesion inside is {means}; the lowest is {lowest}. {price(area, list(values))}"
    )
    return sentence, said.strip() + _left_out(empty)


def _left_out(empty: int) -> str:
    return (
        f" {count(empty, 'image')} without a lesion {'is' if empty == 1 else 'are'} left out."
        if empty
        else ""
    )


def threshold_words(tau: np.ndarray, tau_crc: float, empty: int) -> tuple[str, str]:
    """Title and alt text of the chart of thresholds."""
    reach = f"from {chance(tau.min())} to {chance(tau.max())}"
    one = "the whole image" if tau_crc <= -LIMIT else chance(tau_crc)
    sentence = f"COAT's own thresholds run {reach}; CRC takes {one} for every image."
    middle, lower, higher = (
        chance(float(np.median(tau))),
        int((tau < tau_crc).sum()),
        int((tau > tau_crc).sum()),
    )
    said = (
        f"Dot chart of the COAT thresholds of {count(len(tau), 'image')} as probabilities, {reach}, with a median of {middle}, over the one "
        f"CRC threshold, {one}. {lower} lie below it and mark more than CRC does, {higher} lie above it and mark less."
    )
    return sentence, said + _left_out(empty)

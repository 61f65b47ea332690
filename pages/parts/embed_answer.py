"""What the Gradio page reads and what it answers: files in, and a promise as picture, table, words and plain values out.

It lays out nothing and imports no Gradio; `pages/embed.py` does both.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

SAMPLE = 7  # the drawn picture that is on screen before anything is uploaded


def gather(
    image: str | None, mask: str | None, model: str, resize_mask: bool
) -> tuple[Any, Any, str, tuple[str, ...]]:
    """Read what was uploaded, or draw the sample.

    Returns:
        Pixels `(H, W, 3)` uint8, the mask `(H, W)` bool or None, the file's name, and what was done to the files, in sentences.

    Raises:
        BadImage: The files cannot be used; its text says why and how to mend it.
    """
    from core import images

    if image is None:
        if model != "phantom":
            from core.lab.domains import words_of

            raise images.BadImage(
                f"The {model} model needs {words_of(model).picture} of yours: drop one in, or choose the phantom model."
            )
        from core.data.phantoms import draw

        drawn = draw(SAMPLE)
        return (
            drawn.image,
            drawn.mask,
            "a drawn picture",
            ("This picture is drawn, not taken. Drop your own image in.",),
        )
    pictures = images.read(Path(image))
    first = pictures[0]
    notes = list(first.notes)
    if len(pictures) > 1:
        notes.append(f"The archive holds {len(pictures)} pictures; this is the first, {first.name}.")
    slices = first.pixels.shape[0]
    middle = slices // 2
    if slices > 1:
        notes.append(
            f"Of {slices} slices this is number {middle + 1}, the middle one. The coverage page shows them all."
        )
    rgb = images.to_rgb(first, middle)
    truth = None
    if mask is not None:
        read = images.read_mask(Path(mask), shape=rgb.shape[:2], slice_index=middle, resize=resize_mask)
        truth = read.array
        notes += read.notes
    return rgb, truth, first.name, tuple(notes)


def show(found: Any, seed: int, notes: tuple[str, ...]) -> tuple[Any, list[list[Any]], str, dict[str, Any]]:
    """Turn a `core.lab.promise.Promise` into picture, table, words and plain values."""
    from core.figures.outlines import draw_outlines
    from core.images import to_display
    from core.lab.take_away import promise_settings

    facts = promise_settings(found, seed)
    probability, coverage = facts["threshold_probability"], found.coverage or {}
    rows = [
        [
            method,
            f"{probability[method]:.3g}",
            f"{100 * found.area[method]:.1f}",
            f"{100 * coverage[method]:.1f}" if method in coverage else "–",
        ]
        for method in found.tau
    ]
    words = "\n\n".join(found.sentences) + "".join(f"\n- {note}" for note in (*notes, *found.notes))
    sets = {method: found.set_of(method) for method in ("CRC", "COAT")}
    return to_display(draw_outlines(found.image, found.mask, sets)), rows, words, facts

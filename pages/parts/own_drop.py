"""Step 1 of a person's own data: files come in, are kept for this visit, and go when asked. It reads nothing (`own_check.py` does)."""

from __future__ import annotations

import streamlit as st

from core.lab.own_sample import sample_zip
from pages.parts import dropped, waiting
from pages.parts.dropped import File

ZONES = {
    "own-maps": ("Score maps with their masks", "Zip with maps/ and masks/ (images/ and groups.csv if you have them), NPZ with maps and "
    "masks, or single PNG "
                 "(8 or 16 bits), TIFF, NIfTI and NPY files."),
    "own-masks": ("Masks", "The truth under the maps' names: 0 is background. An ending such as _mask is fine."),
    "own-images": ("Images", "What the maps were made of. Optional: shown here, and seen by AT and COAT while they are trained."),
    "own-groups": ("Groups (CSV)", "The first column is the map's name; each other column is a group that is known without the mask, such "
    "as site, age or device."),
}  # fmt: skip

MEMORIES = (
    "own-answers",
    "own-found",
    "own-maps-read",
    "own-prepared",
    "own-trained",
    "own-study",
    "own-picked",
)
SAMPLE = "a-sample.zip"


def drop_here() -> dict[str, list[File]]:
    """The drop zones, the sample, and what becomes of the files. Returns zone -> files, those from before a visit to another page among them."""
    _zone("own-maps")
    with st.container(horizontal=True, gap="small"):
        st.button(
            "Try a sample",
            on_click=_take_sample,
            icon=":material/science:",
            help="Drawn pictures, scored by the network that ships for them.",
        )
        st.download_button(
            "As a zip", sample_zip, "plumbline-sample.zip", "application/zip", on_click="ignore", icon=":material/download:",
            help="The sample, to see the layout: maps/, masks/, images/, groups.csv.", key="own-sample-zip",
        )  # fmt: skip
    with st.expander("Masks, images or groups in files of their own", icon=":material/attach_file:"):
        for zone in ("own-masks", "own-images", "own-groups"):
            _zone(zone)
    dropped.forget_button(tuple(ZONES), forget, "own-forget")
    return dropped.files_of(ZONES)


def _zone(zone: str) -> None:
    label, help = ZONES[zone]
    dropped.zone(zone, label, help, ("own-maps",) if zone == "own-maps" else (), "own-answers")


def _take_sample() -> None:
    forget()
    dropped.kept("own-maps")[dropped.SAMPLE] = (
        SAMPLE,
        b"",
    )  # made when it is read, with a spinner in its place


def forget() -> None:
    """Let go of all files and everything that was made of them."""
    dropped.forget(ZONES, MEMORIES)
    waiting.leave("own")

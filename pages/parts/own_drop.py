"""Step 1 of a person's own data: files come in, are kept for this visit, and go when asked. It reads nothing (`own_check.py` does)."""

from __future__ import annotations

import streamlit as st

from core.lab.own_sample import sample_zip

ZONES = {
    "own-maps": ("Score maps with their masks", "Zip with maps/ and masks/ (images/ and groups.csv if you have them), NPZ with maps and "
    "masks, or single PNG "
                 "(8 or 16 bits), TIFF, NIfTI and NPY files."),
    "own-masks": ("Masks", "The truth under the maps' names: 0 is background. An ending such as _mask is fine."),
    "own-images": ("Images", "What the maps were made of. Optional: shown here, and seen by AT and COAT while they are trained."),
    "own-groups": ("Groups (CSV)", "The first column is the map's name; each other column is a group that is known without the mask, such "
    "as site, age or device."),
}  # fmt: skip

File = tuple[str, bytes]
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
    files = {zone: list(_kept(zone).values()) for zone in ZONES}
    count = sum(map(len, files.values()))
    if count and any(set(_kept(z)) - _in_zone(z) for z in ZONES):
        st.button(
            f"Forget my {count} file{'s' if count > 1 else ''}", on_click=forget, icon=":material/delete:"
        )
    st.caption(
        "Files stay in this server's memory while this tab is open, are never written to disk, logged or shown to anyone else. Whoever "
        "runs this server "
        "could still reach its memory: use de-identified data."
    )
    return files


def key_of(files: dict[str, list[File]]) -> tuple[object, ...]:
    """What makes an upload the same: the ids of its files."""
    return tuple((zone, tuple(_kept(zone))) for zone in files)


def _zone(zone: str) -> None:
    label, help = ZONES[zone]
    st.file_uploader(label, accept_multiple_files=True, key=zone, help=help, on_change=_changed, args=(zone,))
    st.session_state[f"{zone}-in-zone"] = {f.file_id for f in st.session_state.get(zone) or []}


def _kept(zone: str) -> dict[str, File]:
    """Files of this session, `{upload id: (name, bytes)}`: a drop zone forgets its files when another page is visited."""
    kept: dict[str, File] = st.session_state.setdefault(f"{zone}-kept", {})
    return kept


def _in_zone(zone: str) -> set[str]:
    return set(st.session_state.get(f"{zone}-in-zone", ()))


def _changed(zone: str) -> None:
    now = {f.file_id: (f.name, f.getvalue()) for f in st.session_state.get(zone) or []}
    kept = _kept(zone)
    kept.pop("sample", None)
    for gone in _in_zone(zone) - set(now):
        kept.pop(gone, None)
    kept.update(now)
    st.session_state.pop("own-answers", None)


def _take_sample() -> None:
    forget()
    _kept("own-maps")["sample"] = (SAMPLE, b"")  # made when it is read, with a spinner in its place


def forget() -> None:
    """Let go of all files and everything that was made of them."""
    for zone in ZONES:
        _kept(zone).clear()
    for memory in (
        "own-answers",
        "own-found",
        "own-maps-read",
        "own-prepared",
        "own-trained",
        "own-study",
        "own-picked",
    ):
        st.session_state.pop(memory, None)
    ticket = st.session_state.pop("own-ticket", None)
    if ticket is not None:
        ticket.leave()

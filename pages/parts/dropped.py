"""Drop zones whose files outlive a visit to another page, and go when asked.

Streamlit's own zone forgets its files when its page is left. Files of a zone are kept in the session under the zone's name; what was made of
them is the page's business (`memories`). It reads no file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import streamlit as st

File = tuple[str, bytes]
"""Name and contents."""

SAMPLE = "sample"
"""Key of a sample among a zone's files."""

PRIVACY = (
    "Files stay in this server's memory while this tab is open, are never written to disk, logged or shown to anyone else. Whoever "
    "runs this server could still reach its memory: use de-identified data."
)


def zone(
    name: str,
    label: str,
    help: str,
    zones: Sequence[str],
    answers: str,
    endings: Sequence[str] | None = None,
) -> None:
    """One drop zone.

    Args:
        name: Its key.
        label: What stands over it.
        help: What fits.
        zones: All zones that belong together: a file of one's own in any of them lets go of a sample.
        answers: Key of what the person was asked about the files; new files ask anew.
        endings: Endings that it takes; None takes all.
    """
    st.file_uploader(
        label, endings, accept_multiple_files=True, key=name, help=help, on_change=_changed, args=(name, tuple(zones), answers)
    )  # fmt: skip
    st.session_state[f"{name}-in-zone"] = {f.file_id for f in st.session_state.get(name) or []}


def kept(name: str) -> dict[str, File]:
    """Files of a zone in this session, upload id -> file."""
    files: dict[str, File] = st.session_state.setdefault(f"{name}-kept", {})
    return files


def files_of(zones: Iterable[str]) -> dict[str, list[File]]:
    """Zone -> its files, those from before a visit to another page among them."""
    return {name: list(kept(name).values()) for name in zones}


def key_of(zones: Iterable[str]) -> tuple[object, ...]:
    """What makes an upload the same: the ids of its files."""
    return tuple((name, tuple(kept(name))) for name in zones)


def forget(zones: Iterable[str], memories: Iterable[str]) -> None:
    """Let go of all files and of everything that was made of them."""
    for name in zones:
        kept(name).clear()
    for memory in memories:
        st.session_state.pop(memory, None)


def forget_button(zones: Sequence[str], on_click: Callable[[], None], key: str) -> None:
    """A button that lets go of files, where the zones themselves no longer show them; and where files are kept, in words."""
    count = sum(len(kept(name)) for name in zones)
    if count and any(set(kept(name)) - _in_zone(name) for name in zones):
        st.button(
            f"Forget my {count} file{'s' if count > 1 else ''}", on_click=on_click, icon=":material/delete:", key=key
        )  # fmt: skip
    st.caption(PRIVACY)


def _in_zone(name: str) -> set[str]:
    return set(st.session_state.get(f"{name}-in-zone", ()))


def _changed(name: str, zones: tuple[str, ...], answers: str) -> None:
    now = {f.file_id: (f.name, f.getvalue()) for f in st.session_state.get(name) or []}
    for other in zones:
        kept(other).pop(SAMPLE, None)
    mine = kept(name)
    for gone in _in_zone(name) - set(now):
        mine.pop(gone, None)
    mine.update(now)
    st.session_state.pop(answers, None)

"""One image under each loss: what its network says, how sure it is, where it is wrong. Samples, or a visitor's own picture.

It draws and asks; `core.lab.margin_view` runs the networks, uploads through the one runner. Real sets have pictures only where the server's owner
says in which folder they lie.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.figures.margin_maps import confidence_bar, confidence_map, error_map, maps_words
from core.lab.margin_record import TITLES, LossRecord
from core.lab.margin_record import records as records_of
from core.lab.margin_sets import CLASSES
from core.lab.margin_view import View, look, networks_there, view_sentence
from core.lab.margin_words import SETS
from core.lab.pool import Painter, painter
from core.lab.sources import phantom_parts
from pages.components.gallery import gallery
from pages.parts import shelf, uploads
from pages.parts.queued import through_runner

SAMPLES = 10
HEIGHT = 560
TILE = 166
"""Width of a map in pixels: four in a row on a desk, two on a telephone."""

WARNINGS = {
    "phantom": "These networks have seen drawn pictures (phantoms) only; what they say of an image of your own means nothing.",
    "skin": "These networks have seen dermoscopy photos only, 300 of them, at 96 pixels. They are for teaching and no medical device.",
    "polyp": "These networks have seen colonoscopy frames only, 300 of them, at 96 pixels. They are for teaching and no medical device.",
    "nuclei": "These networks have seen microscopy images of nuclei only, 300 of them. They are for teaching and no medical device.",
}


def folder_of(data: str) -> str | None:
    """Folder of a real set on this server, from its environment variable."""
    return os.environ.get(variable_of(data))


def variable_of(data: str) -> str:
    """The environment variable of a set."""
    return shelf.DATA_FOLDER.format(data.upper())


@lru_cache(maxsize=8)
def _painter(data: str, folder: str | None) -> Painter | None:
    return painter(data, Path(folder) if folder else None)


@lru_cache(maxsize=256)
def _picture(data: str, name: str, folder: str | None) -> tuple[np.ndarray, np.ndarray] | None:
    paint = _painter(data, folder)
    try:
        return paint(name) if paint else None
    except FileNotFoundError:  # a folder that holds a part of the set only
        return None


@lru_cache(maxsize=64)
def _views(
    data: str,
    name: str,
    folder: str | None,
    losses: tuple[str, ...],
    temperatures: tuple[tuple[str, float], ...],
) -> dict[str, View] | None:
    found = _picture(data, name, folder)
    return None if found is None else look(data, losses, *found, dict(temperatures))


def samples(data: str, records: Mapping[str, LossRecord]) -> list[str]:
    """Images of the pool from the worst to the best under cross-entropy, evenly; the first ones where nothing is recorded."""
    one = records.get("CE") or next(iter(records.values()), None)
    if one is None:
        return list(phantom_parts().pool[:SAMPLES]) if data == "phantom" else []
    order = [int(i) for i in np.argsort(one.dice) if not np.isnan(one.dice[i])]
    at = np.unique(np.linspace(0, len(order) - 1, min(SAMPLES, len(order))).round().astype(int))
    return [one.names[order[i]] for i in at]


def show(data: str, records: Mapping[str, LossRecord], scope: str) -> None:
    """Gallery, drop zone and the maps."""
    st.subheader("One image, every loss")
    place = st.container()
    with st.expander("Your own image", icon=":material/upload:", expanded=False):
        mine = uploads.drop_here()
        st.caption(WARNINGS[data])
    with place:
        chosen, maps = _choose(data, records, mine)
    own = {u.id: u for u in mine}
    losses = networks_there(data)
    with maps:
        if not losses:
            st.info(
                f"The networks of {SETS[data].lower()} are not in assets/weights, so there are no maps. The recorded figures above do not need "
                f"them.",
                icon=":material/info:",
            )
        elif chosen in own:
            st.query_params.pop("sample", None)
            _of_upload(data, losses, own[chosen], records, scope)
        elif chosen:
            shelf.in_address("sample", chosen)
            _of_sample(data, losses, chosen, records, scope)
        else:
            _without_pictures(data)
            _phantom_instead(scope)


def _phantom_instead(scope: str) -> None:
    """One drawn picture under the phantoms' own networks, so that the maps can be seen where no real picture is at hand."""
    losses = networks_there("phantom")
    try:
        drawn = records_of("phantom")
    except FileNotFoundError:
        drawn = {}
    names = samples("phantom", drawn)
    if losses and names:
        st.caption("A phantom instead, under networks that were trained on phantoms.")
        _of_sample("phantom", losses, names[len(names) // 2], drawn, scope)


def _choose(
    data: str, records: Mapping[str, LossRecord], mine: list[uploads.Upload]
) -> tuple[str, DeltaGenerator]:
    """An upload's id, a pool name, or "" where nothing can be shown; and the place for its maps."""
    folder = folder_of(data)
    names = samples(data, records)
    asked = st.query_params.get("sample", "")
    known = next(iter(records.values())).names if records else tuple(names)
    if asked in known and asked not in names:
        names.insert(0, asked)
    one = records.get("CE")
    items = [
        {"id": u.id, "image": uploads.thumbnail_of(u), "caption": u.picture.name, "badge": "yours"}
        for u in mine
    ]
    for name in names:
        found = _picture(data, name, folder)
        if found is not None:
            badge = (
                f"Dice {one.dice[one.names.index(name)]:.2f}"
                if one is not None and name in one.names
                else None
            )
            items.append(
                {"id": name, "image": found[0], "caption": name.replace("phantom-", "no. "), "badge": badge}
            )
    if not items:
        return "", st.container()
    fresh = [u.id for u in mine if u.id not in st.session_state.get("margin-known", ())]
    st.session_state["margin-known"] = [u.id for u in mine]
    here = fresh[0] if fresh else st.session_state.get("margin-image") or asked
    ids = [str(i["id"]) for i in items]
    strip, maps = st.columns([1.6, 8.4], gap="medium")
    with strip:
        chosen = gallery(
            items,
            here if here in ids else ids[0],
            key=f"margin-gallery-{data}",
            label="Images",
            height=HEIGHT,
        )
    st.session_state["margin-image"] = chosen
    return chosen, maps


def _without_pictures(data: str) -> None:
    masks = "masks/ with _segmentation behind each name" if data == "skin" else "masks/"
    st.info(
        f"No real picture ships with Plumbline. To see the maps of {SETS[data].lower()}, start the server with {variable_of(data)} set "
        f"to the folder of "
        f"the data set (it must hold images/ and {masks}), or drop an image of your own below.",
        icon=":material/image:",
    )


def _temperatures(records: Mapping[str, LossRecord]) -> tuple[tuple[str, float], ...]:
    return tuple((loss, r.temperature) for loss, r in records.items() if r.temperature != 1.0)


def _of_sample(
    data: str, losses: tuple[str, ...], name: str, records: Mapping[str, LossRecord], scope: str
) -> None:
    try:
        views = _views(data, name, folder_of(data), losses, _temperatures(records))
    except (FileNotFoundError, ValueError) as problem:
        st.warning(str(problem), icon=":material/info:")
        return
    if views is None:
        _without_pictures(data)
        return
    draw(views, data, scope, name)


def _of_upload(
    data: str, losses: tuple[str, ...], upload: uploads.Upload, records: Mapping[str, LossRecord], scope: str
) -> None:
    try:
        what = uploads.choose_slice(upload)
        views = _through_runner(data, losses, what, dict(_temperatures(records)))
    except (FileNotFoundError, ValueError) as problem:
        st.warning(str(problem), icon=":material/broken_image:")
        return
    draw(views, data, scope, upload.picture.name)
    for note in what.notes:
        st.caption(note)


def _through_runner(
    data: str, losses: tuple[str, ...], what: uploads.Chosen, temperatures: dict[str, float]
) -> dict[str, View]:
    """The networks' answer on a visitor's image: from this session's memory, or one after another with everybody else's."""
    mask = None if what.mask is None else what.mask.tobytes()
    return through_runner(
        "margin-views",
        (data, losses, what.key, hash(mask)),
        lambda: look(data, losses, what.rgb, what.mask, temperatures),
    )


def draw(views: Mapping[str, View], data: str, scope: str, name: str) -> None:
    """Confidence and errors of every loss, and the picture beside them."""
    kind = st.segmented_control(
        "Show",
        ("how sure it is", "where it is wrong"),
        default="how sure it is",
        required=True,
        key="map",
        bind="query-params",
        label_visibility="collapsed",
    )
    first = next(iter(views.values()))
    classes = len(CLASSES[data])
    wrong = kind == "where it is wrong"
    tiles: list[tuple[np.ndarray, str, str, str]] = [
        (
            first.picture,
            "What they see",
            shelf.plain(name if len(name) < 17 else f"{name[:15]}…"),
            f"{name}, at the networks' own size",
        )
    ]
    for loss, v in views.items():
        e = v.ece(scope)
        said = f"ECE {100 * e:.1f}\u00a0%" if e is not None else f"{100 * v.sure:.1f}\u00a0% sure"
        if wrong and v.truth is not None:
            image = error_map(v.picture, v.predicted, v.truth, v.confidence)
        else:
            image = confidence_map(v.confidence, truth=v.truth, classes=classes)
        words = (
            maps_words(v.predicted, v.truth, v.confidence)
            if v.truth is not None
            else "How sure it is of each pixel."
        )
        tiles.append((image, TITLES[loss], said, f"{TITLES[loss]}: {words}"))
    with st.container(horizontal=True, gap="small"):
        for image, title, said, words in tiles:
            with st.container(width=TILE):
                st.image(image, width="stretch", alt=words)
                st.markdown(f"**{title}**  \n{said}")
    if wrong and first.truth is None:
        st.caption("Errors are known only where a mask says what is true; drop one beside your image.")
    if wrong and first.truth is not None:
        st.caption(
            "White: the true outline. Dotted: wrong. Hatched and outlined: wrong and at least 90\u00a0% sure of it."
        )
    else:
        st.altair_chart(confidence_bar(classes=classes), width="stretch", key="margin-bar")
    st.markdown(view_sentence(dict(views), data, scope))

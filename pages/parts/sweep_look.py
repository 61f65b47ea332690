"""Which image lies under the knife, and the knife over it: a phantom, a pool image known by its scores alone, or a visitor's upload."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.coat.sweep import TEMPERATURES
from core.conformal.words import percent
from core.figures.temperature_frame import description
from core.figures.temperature_knife import knife_on_picture, knife_on_scores
from core.figures.temperature_needles import Needles
from core.lab.knife import (
    Knife,
    Lesion,
    blade,
    histogram,
    knife,
    lesion_of_map,
    lesion_of_pool,
    shading,
    small_mask,
)
from core.lab.promise import promise
from core.lab.study import Split, hardest
from pages.components.gallery import gallery
from pages.parts import shelf, uploads

SAMPLES = 10
HEIGHT = 345
FRAMES = 9


@dataclass(frozen=True)
class Under:
    """What lies under the knife.

    Attributes:
        name: What it is called.
        lesion: Its scores.
        tau: Method -> threshold in logits.
        area: Method -> share of the image in the set.
        picture: `(H, W, 3)` uint8, or None where only its scores are known.
        logits: `(H, W)`, or None.
        mask: `(H, W)` bool, or None.
        notes: What must be known besides.
    """

    name: str
    lesion: Lesion
    tau: dict[str, float]
    area: dict[str, float]
    picture: np.ndarray | None = None
    logits: np.ndarray | None = None
    mask: np.ndarray | None = None
    notes: tuple[str, ...] = ()


def choose(split: Split, mine: list[uploads.Upload], place: DeltaGenerator) -> str:
    """The image: a thumbnail of a sample or an upload, or a name in a list where no picture is here. An upload's id or a pool name."""
    names, model = split.study.curves.names, split.study.name
    coverage = split.coverage("CRC")
    fresh = [u.id for u in mine if u.id not in st.session_state.get("sweep-known", ())]
    st.session_state["sweep-known"] = [u.id for u in mine]
    here = fresh[0] if fresh else st.session_state.get("sweep-image") or st.query_params.get("sample", "")
    items = [
        {"id": u.id, "image": uploads.thumbnail_of(u), "caption": u.picture.name, "badge": "yours"}
        for u in mine
    ]
    known = [names[i] for i in hardest(split, "CRC", SAMPLES)]
    if here in names and here not in known:
        known.insert(0, here)
    drawn = {name: shelf.pool_image(model, name) for name in known}
    items += [
        {
            "id": n,
            "image": found[0],
            "caption": n.replace("phantom-", "no. "),
            "badge": _share(coverage[names.index(n)]),
        }
        for n, found in drawn.items()
        if found is not None
    ]
    if not has_pictures(split):
        return _from_list(split, items, here, place)
    ids = [str(item["id"]) for item in items]
    with place:
        chosen = gallery(
            items,
            here if here in ids else ids[0],
            key=f"sweep-gallery-{model}",
            label="Images",
            height=HEIGHT,
        )
    st.session_state["sweep-image"] = chosen
    return chosen


def has_pictures(split: Split) -> bool:
    """Whether this server can show the images of the pool."""
    return shelf.pool_image(split.study.name, split.study.curves.names[0]) is not None


def _share(coverage: float) -> str | None:
    return None if np.isnan(coverage) else percent(float(coverage))


def _from_list(split: Split, items: list[dict[str, object]], here: str, place: DeltaGenerator) -> str:
    """A list of the pool's images, the hardest first, with the uploads on top."""
    names, coverage = split.study.curves.names, split.coverage("CRC")
    order = [
        i
        for i in np.argsort(np.where(np.isnan(coverage), np.inf, coverage))
        if i in set(split.testing.tolist())
    ]
    words = {str(item["id"]): f"{item['caption']} (yours)" for item in items}
    words |= {names[i]: f"{names[i]}: CRC finds {_share(coverage[i]) or 'no lesion'}" for i in order}
    if here in names and here not in words:
        words[here] = f"{here} (calibrates in this draw)"
    options = list(words)
    with place:
        chosen = st.selectbox(
            "Image",
            options,
            index=options.index(here) if here in options else 0,
            format_func=words.__getitem__,
            key=f"sweep-list-{split.study.name}",
            help="Images of the pool, the hardest for CRC first. No real picture ships with Plumbline; their scores do.",
        )
    st.session_state["sweep-image"] = chosen
    return str(chosen)


def under(split: Split, chosen: str, mine: list[uploads.Upload]) -> Under | None:
    """Everything the knife needs of an image; None, after a sentence, where an upload cannot be read."""
    own = {u.id: u for u in mine}
    model, names = split.study.name, split.study.curves.names
    if chosen in own:
        st.query_params.pop("sample", None)
        try:
            what = uploads.choose_slice(own[chosen])
            scored = uploads.scored(what, model, own[chosen].picture.name)
            uploads.remember(chosen, scored, what.mask)
            p = promise(scored, what.mask, alpha=split.alpha, seed=split.seed)
        except ValueError as problem:
            st.warning(str(problem), icon=":material/broken_image:")
            return None
        lesion = lesion_of_map(p.logits, p.mask)
        return Under(p.name, lesion, p.tau, p.area, p.image, p.logits, p.mask, (*p.notes, *what.notes))
    shelf.in_address("sample", chosen)
    scored_one, found = shelf.scored_pool_image(model, chosen), shelf.pool_image(model, chosen)
    if scored_one is not None and found is not None:
        p = promise(scored_one, found[1], alpha=split.alpha, seed=split.seed)
        return Under(
            chosen, lesion_of_map(p.logits, p.mask), p.tau, p.area, p.image, p.logits, p.mask, tuple(p.notes)
        )
    i = names.index(chosen)
    methods = ("CRC", "plug-in", "AT", "COAT")
    tau = {m: float(split.tau(m)[i]) for m in methods}
    return Under(
        chosen, lesion_of_pool(split.study.curves, i), tau, {m: float(split.area(m)[i]) for m in methods}
    )


def frames(unit: str) -> tuple[float, ...]:
    """Temperatures of the animation, from fog to knife."""
    all_of = TEMPERATURES[unit]
    at = np.unique(np.linspace(0, len(all_of) - 1, FRAMES).round().astype(int))
    return tuple(all_of[i] for i in at[::-1])


def draw(item: Under, k: Knife, around: str) -> None:
    """The soft threshold over the picture, or over the scores where there is none."""
    ts = frames(k.unit)
    soft = tuple(item.lesion.soft(k.tau, t, k.unit) for t in ts)
    needles = Needles(ts, soft, k.temperature, k.soft, k.hard, k.alpha, k.known)
    if item.picture is not None and item.logits is not None:
        mask = None if item.mask is None else small_mask(item.mask)
        stack = shading(item.logits, k.tau, (*ts, k.temperature), k.unit)
        figure = knife_on_picture(
            item.picture, stack[:-1], stack[-1], needles, mask, name=item.name, height=HEIGHT
        )
    else:
        edges, share = histogram(item.lesion)
        grid = np.linspace(-15, 15, 241)
        curves = blade(grid, k.tau, (*ts, k.temperature), k.unit)
        figure = knife_on_scores(
            edges,
            share,
            grid,
            curves[:-1],
            curves[-1],
            k.tau,
            needles,
            name=item.name,
            method=around,
            height=HEIGHT,
        )
    st.plotly_chart(
        figure,
        width="stretch",
        key="sweep-knife",
        alt=description(figure),
        config={"displayModeBar": False},
    )


def lay(item: Under, around: str, temperature: float, unit: str, alpha: float) -> Knife:
    """The knife at a method's threshold for this image."""
    return knife(item.lesion, item.tau[around], temperature, unit, alpha)

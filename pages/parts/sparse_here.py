"""*Watch it adapt* on the sparse page: pictures are damaged, λ follows them without labels, the network answers before and after. Seconds.

It draws and asks; `core.lab.sparse_here` runs through the one runner. The button's ticket lives in the visitor's session.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import streamlit as st

from core.conformal.words import percent
from core.data.corruptions import CORRUPTIONS
from core.figures.outlines import draw_outlines
from core.figures.sparse_codes import montage
from core.figures.sparse_dots import lambda_dots, lambda_steps
from core.lab import sparse_shelf
from core.lab.jobs import Ticket
from core.lab.sparse_here import Watched, start, watch
from core.lab.sparse_here_words import watched_words
from core.lab.sparse_images import LARGE_SIDE, SIDE
from core.lab.sparse_view import ADAPT_TITLES
from core.lab.sparse_view import severity as severity_of
from core.settings import knobs
from core.settings.tacsc import ADAPTATIONS, AdaptSettings
from pages.parts import shelf, sparse_pictures, waiting
from pages.parts.sparse_chart import chart, words_of
from pages.parts.sparse_first import Scene, now, source
from pages.parts.sparse_tiles import tiles

NAME = "sparse"
KNOBS = knobs(AdaptSettings)
RATES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
UNETS = {"unet-phantom-tacsc": "U-Net, phantoms", "unet-polyp-tacsc": "U-Net, polyps"}
LINES = {"clean": "oracle", "none": "CRC", "bn": "AA-CRC", "lambda": "plug-in", "both": "COAT"}
"""Way of adaptation -> the entry of the palette with its colour: before orange, after blue."""
WARNING = (
    "The classifiers know the ten classes of CIFAR-10 only and name one of them whatever they see; the U-Nets know one kind of picture. Look at "
    "whether an answer *changes*. They are for teaching and **no medical device**."
)


def finished() -> Watched | None:
    """This visitor's last finished run."""
    kept = st.session_state.get(f"{NAME}-trained")
    return kept if isinstance(kept, Watched) else None


def networks(scene: Scene) -> dict[str, str]:
    """Networks that can adapt here: that of the page and the U-Nets, those that are in assets/weights."""
    there = sparse_shelf.networks()
    offered = {scene.key: "the classifier above"} | UNETS
    return {key: words for key, words in offered.items() if key in there}


def show(scene: Scene) -> None:
    """The controls, and under them the run: waiting, running, done or failed."""
    offered = networks(scene)
    if not offered:
        st.info(
            "No network with a sparse layer is in assets/weights yet, so nothing can adapt here. Your pictures stand on the first screen.",
            icon=":material/info:",
        )
        return
    asked = _controls(scene, offered)
    if waiting.ticket_of(NAME) is not None:
        _watch(() if scene.record is None else severity_of(scene.record, CORRUPTIONS[0]).names)
        return
    waiting.show_said(NAME)
    run = finished()
    if run is not None:
        _done(run)
        if (run.key, run.corruption, run.severity, run.settings) != asked:
            st.caption("The controls have moved since; press the button to adapt to what they say.")


def _controls(scene: Scene, offered: Mapping[str, str]) -> tuple[str, str, int, AdaptSettings]:
    if st.session_state.get("sparse-net-here") not in (None, *offered):
        st.session_state.pop("sparse-net-here")
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        key = str(
            st.segmented_control(
                "Which network", list(offered), default=next(iter(offered)), required=True, format_func=offered.__getitem__, key="sparse-net-here"
            )
        )  # fmt: skip
        steps, rate = KNOBS["steps"], KNOBS["rate"]
        settings = replace(
            AdaptSettings(),
            steps=int(st.number_input(steps.label, 1, 60, int(steps.default), key="sparse-steps", width=110, help=steps.help)),
            rate=float(
                st.select_slider(rate.label, RATES, float(rate.default), key="sparse-here-rate", width=190, help=rate.help)
            ),
        )  # fmt: skip
        side = LARGE_SIDE if key in UNETS else SIDE
        pictures, problem = sparse_pictures.chosen(source(), scene.mine, scene.seed, side)
        unfit = bool(problem) and source() == "yours" and scene.mine is not None
        corruption, severity = now()
        if not severity:
            corruption = "clean"
        busy = waiting.busy(NAME)
        under = f"{words_of(corruption)}, severity {severity}" if severity else "clean pictures"
        if st.button(
            f"Adapt to {under}", type="primary", icon=":material/tune:", disabled=busy or unfit, key="sparse-go"
        ):  # fmt: skip
            waiting.take(NAME, _asked(key, pictures, corruption, severity, settings, scene.seed))
            st.rerun()
        if st.button("Stop", icon=":material/stop_circle:", disabled=not busy, key="sparse-stop"):
            waiting.stop(NAME)
            st.rerun()
    st.caption(
        f"{pictures.pictures.words} A quarter of them is held back and answered, λ follows the others; where many layers are sparse, fewer are used."
    )
    if unfit:
        st.info(
            "Your picture cannot be used, as said above. Drop another one, or choose Drawn.",
            icon=":material/image:",
        )
    if problem and source() != "yours":
        st.info(problem, icon=":material/image:")
    return key, corruption, severity, settings


def _asked(
    key: str, of: sparse_pictures.Chosen, corruption: str, severity: int, settings: AdaptSettings, seed: int
) -> Ticket:
    """A ticket for the run. A visitor's own pictures go to the runner that keeps no result."""
    st.session_state[sparse_pictures.OWN_RUN] = bool(of.owner)
    if not of.owner:
        return start(key, of.pictures, corruption, severity, settings, seed)
    return shelf.RUNNER.submit(
        (of.owner, "sparse", key, of.key, corruption, severity, settings, seed),
        lambda on_step: watch(key, of.pictures, corruption, severity, settings, seed, on_step),
    )


@st.fragment(run_every=0.5)
def _watch(names: tuple[str, ...]) -> None:
    """Look at the ticket twice a second; the dots of λ move while the run goes."""

    def who(facts: Mapping[str, Any]) -> str:
        return "λ follows" if "threshold" in facts else "Getting ready"

    state = waiting.look(NAME, who, "try it again, or with other pictures", "steps")
    if state is None or not state.facts.get("threshold"):
        return
    lam = np.array(state.facts["threshold"], float)
    if lam.shape[1] == 1:
        names = ("first layer",)
    if lam.shape[1] == len(names):
        chart(lambda_dots(names, lam[0], lam[-1]), "sparse-live", said=False)


def _done(run: Watched) -> None:
    first, *rest = watched_words(run)
    st.markdown(f"**{first}** {' '.join(rest)}")
    chart(
        lambda_steps(
            run.names,
            run.threshold,
            sparsity=run.sparsity,
            error=run.error,
            stopped=run.stopped,
            reach=run.settings.reach,
        ),
        "sparse-steps-chart",
        said=False,
    )
    held = len(run.before.images)
    index = (
        int(st.number_input("Picture", 1, held, 1, key="sparse-picture", width=110)) - 1 if held > 1 else 0
    )
    _pictures(run, index)
    _answers(run, index)
    st.warning(WARNING, icon=":material/school:")


def _pictures(run: Watched, index: int) -> None:
    """Damaged, rebuilt and coded, before in the first row and after in the second."""
    clean = run.untouched.images[index]
    order: np.ndarray | None = None
    top: float | None = None
    for look, when in ((run.before, "Before"), (run.after, "After")):
        codes = montage(look.codes[index], order=order, top=top, enlarge=2 if clean.shape[0] <= SIDE else 1)
        order, top = codes.order, codes.top
        lam = f"λ = {look.threshold:.3g}"
        tiles(
            [
                (clean, "Clean", "The picture before damage"),
                (look.images[index], "Damaged", "The picture after damage"),
                (
                    look.reconstruction[index],
                    f"{when}: rebuilt, error {percent(float(look.error[index]))}",
                    f"{when} adaptation, rebuilt from its codes at {lam}",
                ),
                (
                    codes.picture,
                    f"{when}, {lam}: {percent(float(look.sparsity[index]))} zeros",
                    codes.description,
                ),
            ]
        )


def _answers(run: Watched, index: int) -> None:
    """What the network says of this picture, and over all that were held back."""
    ways = [w for w in ("clean", *ADAPTATIONS) if w in run.answers]
    names = {"clean": "on the clean picture"} | {w: f"damaged, {ADAPT_TITLES[w]}" for w in ADAPTATIONS}
    held = len(run.clean) - run.seen
    if run.segments:
        shown = []
        for way in ways:
            mask = run.answers[way].mask(index)
            if mask is not None:
                picture = run.untouched.images[index] if way == "clean" else run.before.images[index]
                truth = None if run.masks is None else run.masks[index]
                shown.append(
                    (
                        draw_outlines(picture, truth, {LINES[way]: mask}),
                        names[way],
                        f"What the network marks, {names[way]}",
                    )
                )
        tiles(shown)
        st.caption("Coloured: what the network marks. White: the truth, where it is known.")
    rows = []
    for way in ways:
        answer = run.answers[way]
        row: dict[str, Any] = {
            "way": names[way],
            "same": answer.same,
            "right": answer.right if np.isfinite(answer.right) else None,
        }
        for k, (name, share) in enumerate(answer.top(index, 2)):
            row[f"class{k}"] = f"{name}, {percent(share)}"
        rows.append(row)
    known = any(r["right"] is not None for r in rows)
    st.dataframe(
        rows,
        column_order=["way", *([] if run.segments else ["class0", "class1"]), "same", *(["right"] if known else [])],
        column_config={
            "way": st.column_config.TextColumn("What the network says"),
            "class0": st.column_config.TextColumn("first of this picture"),
            "class1": st.column_config.TextColumn("second"),
            "same": st.column_config.NumberColumn(
                "as on the clean one", format="percent", help="Over all pictures held back: share of equal answers, or mean Dice. Asks no truth."
            ),
            "right": st.column_config.NumberColumn("right", format="percent", help="Share of right classes, or mean Dice, where the truth is known."),
        },
        hide_index=True,
        width="stretch",
        key="sparse-answers",
        alt="What the network says before and after each way of adaptation",
    )  # fmt: skip
    st.caption(
        f"{held or 'Some'} pictures were held back from adaptation and answered; {run.seen} were what it saw. {run.seconds:.1f} s. BN refreshed on a "
        "kind of picture that the network was not trained on can change every answer: look at that row first."
    )

"""Sweep: how soft may the knife be? The temperature T at which COAT learns, and the level α, over one image and over the study."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.coat.fit import shifted_gap
from core.coat.objectives import coat_loss, soft_coverage, temperature_at
from core.coat.softness import highest_temperature
from core.coat.sweep import SHIPPED, TEMPERATURES
from core.conformal.words import percent
from core.conformal.words import promised as promised_share
from core.lab.domains import words_of
from core.lab.knife import Beside, Knife, headline, in_words, points
from core.lab.phantom_inputs import STUDY
from core.lab.study import Split
from core.lab.temperature_grid import Grid, grid
from core.lab.temperatures import Temperatures, load
from core.settings import SweepSettings, knobs
from pages.parts import lesson, shelf, sweep_evidence, sweep_look, sweep_train, uploads

KNOBS = knobs(SweepSettings)


def controls() -> tuple[float, float, str]:
    """T, α and the unit of T, in one row; each in the address."""
    left, middle, right = st.columns([5, 4, 3], gap="medium", vertical_alignment="bottom")
    with right:
        knob = KNOBS["unit"]
        unit = str(
            st.segmented_control(
                knob.label,
                knob.choices,
                default=knob.default,
                required=True,
                key="unit",
                help=knob.help,
                bind="query-params",
            )
        )
    with left:
        key = "temperature" if unit == "logit" else "temperature_of_probability"
        knob = KNOBS[key]
        temperature = float(
            st.select_slider(
                knob.label,
                TEMPERATURES[unit],
                value=knob.default,
                format_func=lambda t: f"{t:g}",
                key="T" if unit == "logit" else "Tp",
                help=knob.help,
                bind="query-params",
            )
        )
    with middle:
        alpha = shelf.alpha_slider()
    return temperature, alpha, unit


def metrics(k: Knife, column: Grid, name: str | None, recorded: Temperatures) -> None:
    """Soft and hard share of the image, and what COAT gains and costs over the study, in three cells."""
    which = name or SHIPPED
    crc, coat = column.figures("CRC")[:, 0], column.figures(which)[:, 0]
    words = recorded.title(which)
    cells = st.columns(3, gap="medium")
    cells[0].metric(
        "Soft → hard share, this image",
        f"{percent(k.soft)} → {percent(k.hard)}",
        help="What the training counts as inside, and what is inside.",
    )
    cells[1].metric(
        "Gap, CRC → COAT",
        f"{100 * crc[0]:.1f} → {points(float(coat[0]))}",
        help=f"How far a single image lies from the promise, on average over the study. {words}.",
    )
    cells[2].metric(
        "Set area, CRC → COAT",
        f"{percent(float(crc[2]))} → {percent(float(coat[2]))}",
        help=f"The price: share of an image that is marked. {words}.",
    )


def chosen_sentence(recorded: Temperatures, column: Grid) -> str:
    """T without guessing: what D2 alone would have chosen, and how that fares on the pool."""
    name = recorded.chosen_among(n for n in recorded.variants if n != SHIPPED)
    if name is None:
        return ""
    gap, _, area = (float(v) for v in column.figures(name)[:, 0])
    best = min((n for n in recorded.variants if n != SHIPPED), key=lambda n: float(column.figures(n)[0, 0]))
    hindsight = (
        "No other would have been better in hindsight."
        if best == name
        else f"In hindsight {recorded.title(best)} would have been best, with {points(float(column.figures(best)[0, 0]))}; but hindsight is no "
        "way to choose."
    )
    shipped = column.figures(SHIPPED)[:, 0]
    return (
        f"**T without guessing.** Looking at the images of D2 alone, one would choose {recorded.title(name)}. On the pool, which had no say "
        f"in it, its gap is {points(gap)} for {percent(area)} of the image. {hindsight} {recorded.title(SHIPPED)}: "
        f"{points(float(shipped[0]))} for {percent(float(shipped[2]))}."
    )


def promised(split: Split, k: Knife) -> None:
    """The promise and what it assumes; what T has to do with it."""
    st.markdown(f"**What is promised, and what it assumes.** {split.calibrations['COAT'].guarantee}")
    st.markdown(
        "T changes none of this: whatever COAT learned, one common shift is calibrated afterwards, and the average is right. T decides "
        "only how well the thresholds fit single images, which no theorem promises."
    )
    if k.unit == "probability" and highest_temperature(k.alpha) < k.temperature:
        st.markdown(
            f"At this T the training asks for the impossible: above T = {highest_temperature(k.alpha):.2f} no threshold counts "
            f"{promised_share(k.alpha)} as inside."
        )


def main() -> None:
    """Draw the page: places first, so that what is asked for late may stand early."""
    model, seed = shelf.model_and_seed()
    title = st.empty()
    temperature, alpha, unit = controls()
    split = shelf.split(model, alpha, seed)
    recorded = load(model)
    stage = st.container()
    figures = st.container()
    words, around = explained()
    promise_place, evidence_place, own_place = st.container(), st.container(), st.container()
    with own_place:
        st.subheader("Your own images")
        mine = uploads.drop_here()
    with stage:
        if sweep_look.has_pictures(split):
            strip, picture, over = st.columns([1.8, 4.6, 5.2], gap="small")
        else:
            picture, over = st.columns([6.2, 5.2], gap="small")
            strip = None
    with picture:
        knife_place, list_place = st.container(), st.container()
    chosen = sweep_look.choose(split, mine, strip or list_place)
    with knife_place:
        item = sweep_look.under(split, chosen, mine)
    column = grid(recorded, split.study, (alpha,), seed, KNOBS["draws"].default)
    name = sweep_evidence.nearest(recorded, unit, temperature)
    run = sweep_train.finished()
    k = None
    if item is None:
        title.header("This file could not be scored; the others are still here.")
    else:
        k = sweep_look.lay(item, around, temperature, unit, alpha)
        trained = None
        if name is not None:
            coat, crc = (tuple(column.figures(m)[[0, 2], 0].tolist()) for m in (name, "CRC"))
            trained = Beside(recorded.variants[name].start, coat, crc)
        title.header(headline(k, trained, words_of(model).lesion))
        with knife_place:
            sweep_look.draw(item, k, around)
        with figures:
            metrics(k, column, name, recorded)
    with over, st.spinner("Calibrating every temperature …"):
        everything = grid(recorded, split.study, sweep_evidence.ALPHAS, seed, KNOBS["draws"].default)
        sweep_evidence.map_of(
            split.study, recorded, everything, unit, (temperature, alpha), run, sweep_look.HEIGHT
        )
    with promise_place:
        if k is not None and item is not None:
            below(item, k, words)
            promised(split, k)
        if recorded.note:
            st.info(recorded.note, icon=":material/info:")
    with evidence_place:
        evidence_of_study(split, recorded, column, (temperature, alpha, unit), name, item, k)
    lesson.show("sweep")
    lesson.formula(FORMULAS)
    lesson.code([soft_coverage, coat_loss, temperature_at, highest_temperature, shifted_gap])


def evidence_of_study(
    split: Split,
    recorded: Temperatures,
    column: Grid,
    at: tuple[float, float, str],
    name: str | None,
    item: sweep_look.Under | None,
    k: Knife | None,
) -> None:
    """Lines, gradient, ceiling and table of the whole study, and a run of one's own."""
    temperature, alpha, unit = at
    run = sweep_train.finished()
    st.subheader(f"Along the row of α = {alpha:g}")
    here = split.study.name == STUDY
    own = run.figures(split.study, (alpha,), split.seed) if run is not None and here else None
    dot = None
    if run is not None and own is not None and run.settings.unit == unit:
        dot = (run.settings.temperature_end, own["COAT"][:, 0])
    sweep_evidence.row_of(recorded, column, unit, temperature, alpha, dot)
    if said := chosen_sentence(recorded, column):
        st.markdown(said)
    if item is not None and k is not None:
        sweep_evidence.gradient_and_ceiling(split.study, item.lesion, k.tau, unit, temperature, alpha)
    sweep_evidence.learning(recorded, name)
    st.subheader("The methods side by side")
    sweep_evidence.methods(recorded, column, alpha, name, sweep_train.rows(run, own))
    st.subheader("Train it here")
    if not here:
        st.caption(
            "What is trained here is always the phantom study; choose it above to see the points on its map."
        )
    sweep_train.show(temperature, unit)


def explained() -> tuple[DeltaGenerator, str]:
    """A place for words under the picture, and whose threshold the knife lies at."""
    left, right = st.columns([3, 2], gap="medium", vertical_alignment="top")
    with right:
        knob = KNOBS["around"]
        around = st.segmented_control(
            "Lay the knife at the threshold of",
            knob.choices,
            default=knob.default,
            required=True,
            key="around",
            help=knob.help,
            bind="query-params",
        )
    return left, str(around)


def below(item: sweep_look.Under, k: Knife, words: DeltaGenerator) -> None:
    """What stands under the picture: what is shown, and notes."""
    with words:
        st.markdown(in_words(k))
        st.caption(
            "The bluer a pixel, the more it counts as inside. On the map, blue cells lie closer to the promise than CRC at the same "
            "α and orange ones further away; numbers are gaps in points, and the ring is where you are."
        )
    for note in item.notes:
        st.caption(note)
    if not k.known:
        st.caption(
            "No lesion is marked here, so both shares are what the model itself expects: every pixel counts with its own probability."
        )


FORMULAS = [
    (
        "Soft coverage of an image at threshold τ: every lesion pixel counts by how far it lies above τ, in units of T.",
        r"\mathrm{soft}_i(\tau)=\frac1{m_i}\sum_{j\in Y_i}\sigma\!\Big(\frac{s_{ij}-\tau}{T}\Big)\ \xrightarrow{\ T\to0\ }\ \mathrm{TPR}_i(\tau)",
    ),
    (
        "Its slope is never steeper than if every pixel lay on the threshold.",
        r"\Big|\frac{\partial\,\mathrm{soft}_i}{\partial\tau}\Big|=\frac1{T\,m_i}\sum_{j\in Y_i}\sigma_{ij}(1-\sigma_{ij})\ \le\ \frac1{4T}",
    ),
    (
        "With probabilities instead of logits nothing counts more than σ(1/T), and the target is out of reach for",
        r"\sigma(1/T)<1-\alpha\quad\Longleftrightarrow\quad T>\frac{1}{\log\frac{1-\alpha}{\alpha}}",
    ),
]

main()

"""The row above every page: study as domain and base network, seed with *Resample*, *Copy link*, and the device.

The last two live in the browser: copying needs its clipboard, and the device is asked for over HTTP (`DEVICE_PATH`, answered
by app.py), because finding it out needs a slow import and a rerun on a timer could collide with a person's click.

What it is not: state of its own. Study and seed live in the address under "model" and "seed"; every page reads them through
`pages.parts.choices`. A page on which one of them means nothing does not show it; it stays as it is for the next page.
"""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.settings import CoverageSettings, knobs
from pages.parts import choices

_KNOBS = knobs(CoverageSettings)

DEVICE_PATH = "/about/device"

_PLACE = "header-place"
"""Name in the session of the place that a page may fill; it is new in each run."""

_LINK_AND_DEVICE = st.components.v2.component(
    "plumbline_link_and_device",
    html="""<div><button type="button"></button><span role="status"></span>
<small></small></div>
""",
    css="""
div { display: flex; align-items: center; gap: 0.75rem; font-family: var(--st-font); }
button {
    font: inherit; font-size: 0.875rem; color: var(--st-text-color); background: var(--st-background-color); cursor: pointer; width: 6.5rem;
    border: 1px solid var(--st-border-color); border-radius: var(--st-button-radius); min-height: 2.5rem; padding: 0 0.5rem;
}
button:hover { border-color: var(--st-primary-color); }
button:focus-visible { outline: 3px solid var(--st-primary-color); outline-offset: 1px; }
small { color: var(--st-text-color); font-size: 0.875rem; opacity: 0.8; min-width: 7.5rem; }
span { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
""",
    js="""
// The clipboard API exists on https and localhost only; on a classroom's plain http address the old command still works.
function copyOldWay(text) {
  const area = document.createElement("textarea")
  area.value = text
  area.style.position = "fixed"
  document.body.appendChild(area)
  area.select()
  const done = document.execCommand("copy")
  area.remove()
  return done
}
async function copy(text) {
  if (navigator.clipboard && window.isSecureContext) {
    try { await navigator.clipboard.writeText(text); return true } catch { /* not allowed here: the old way may be */ }
  }
  return copyOldWay(text)
}
let device  // one question a visit, whoever draws the row
export default function ({ parentElement, data }) {
  const where = parentElement.querySelector("small")
  device ??= fetch(data.path).then((answer) => answer.json()).then((said) => said.device)
  if (!where.textContent) where.textContent = data.looking
  device.then((line) => { where.textContent = line }, () => { where.textContent = ""; device = undefined })
  const button = parentElement.querySelector("button")
  const status = parentElement.querySelector("[role=status]")
  if (!button.textContent) button.textContent = data.label
  button.title = data.help
  button.onclick = async () => {
    const done = await copy(window.location.href)
    button.textContent = done ? data.done : data.failed
    status.textContent = button.textContent
    setTimeout(() => { button.textContent = data.label; status.textContent = "" }, 2000)
  }
}
""",
)


def show(study: bool = True, seed: bool = True) -> None:
    """Draw the row. Call it once, above the page.

    Args:
        study: Whether the page is about the study that is chosen here.
        seed: Whether the page draws anything that the seed decides.
    """
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="header"):
        if study:
            choices.study_choosers()
            st.session_state.pop(_PLACE, None)
        else:
            st.session_state[_PLACE] = st.container(
                horizontal=True, vertical_alignment="center", gap="small", width="content"
            )
        if seed:
            _seed()
        shown = [word for word, there in (("model", study), ("seed", seed)) if there]
        _LINK_AND_DEVICE(
            data={
                "label": "Copy link",
                "done": "Link copied",
                "failed": "Not allowed",
                "help": f"Copy the address of exactly this view: {', '.join(['page', *shown])} and every control.",
                "path": DEVICE_PATH,
                "looking": "Looking for a GPU",
            },
            key="link_and_device",
            width="content",
        )


def place() -> DeltaGenerator:
    """Where the study choosers would stand, for a page that shows another choice there; a row of the page's own where it stands alone (tests)."""
    kept = st.session_state.get(_PLACE)
    if isinstance(kept, DeltaGenerator):
        return kept
    return st.container(horizontal=True, vertical_alignment="center", gap="small")


def _seed() -> None:
    """The seed and the button that goes to the next one."""
    seed = _KNOBS["seed"]
    st.markdown("Seed", help=seed.help, width="content")
    st.number_input(
        "Seed",
        int(seed.low or 0),
        int(seed.high or 0),
        step=int(
            seed.step or 1
        ),  # no default beside the lowest value: `resample` sets the state, and both together warn
        key="seed",
        bind="query-params",
        label_visibility="collapsed",
        width=80,
    )
    st.button(
        "Resample",
        on_click=resample,
        icon=":material/shuffle:",
        help="Draw the calibration set again: the next seed.",
    )


def resample() -> None:
    """Go to the next seed; after the last comes the first again."""
    seed = _KNOBS["seed"]
    st.session_state["seed"] = (int(st.session_state["seed"]) + 1) % (int(seed.high or 0) + 1)

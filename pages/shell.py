"""Entry script: which pages there are, the header, and then the page itself.

What it is not: a page. It computes nothing; a page that is added needs one line in `PAGES` and no more.
"""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from pages import header

HERE = Path(__file__).resolve().parent

STUDY_AND_SEED = ("study", "seed")
"""What the header shows on a page that is about the chosen study and draws by the seed."""

# file, title, address, icon, what it is (tooltip of the navigation), what the header shows. The first is the landing page.
PAGES = [
    (
        "start.py",
        "Start",
        "",
        "home",
        "What a promise is, in five minutes, and the way to every page.",
        STUDY_AND_SEED,
    ),
    (
        "coverage.py",
        "Coverage",
        "coverage",
        "target",
        "Where does the threshold go for your image? COAT beside CRC.",
        STUDY_AND_SEED,
    ),
    (
        "sweep.py",
        "Sweep",
        "sweep",
        "tune",
        "How soft may the knife be? The temperature at which COAT learns.",
        STUDY_AND_SEED,
    ),
    (
        "margin.py",
        "Margin",
        "margin",
        "straighten",
        "Can you believe 0.9? Losses that leave a network sure of what it knows.",
        (),
    ),
    (
        "confusion.py",
        "Confusion",
        "confusion",
        "call_split",
        "Who pays for the accuracy? The classes that a long tail gives up, and CAR.",
        (),
    ),
    (
        "sparse.py",
        "Sparse",
        "sparse",
        "blur_on",
        "How much should a layer throw away? λ under corruption, before and after it follows.",
        ("seed",),
    ),
    (
        "own_data.py",
        "Own data",
        "own-data",
        "upload_file",
        "Your model, your promise: bring score maps with masks.",
        ("seed",),
    ),
]

st.set_page_config(
    page_title="Plumbline",
    page_icon=str(
        HERE.parent / "assets" / "icon.svg"
    ),  # a file of ours: icons by name come from another server
    layout="wide",
    initial_sidebar_state=230,
)

ways = {
    address: st.Page(
        HERE / file, title=title, url_path=address, icon=f":material/{icon}:", help=what, default=not address
    )
    for file, title, address, icon, what, _ in PAGES
}
st.session_state["ways"] = ways  # pages link to one another through it
page = st.navigation(list(ways.values()))
shown = next(row[-1] for row in PAGES if row[2] == page.url_path)
header.show(**{part: part in shown for part in STUDY_AND_SEED})
page.run()

"""Entry script: which pages there are, the header, and then the page itself.

What it is not: a page. It computes nothing; a page that is added needs one line in `PAGES` and no more.
"""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from pages import header

HERE = Path(__file__).resolve().parent

# file, title, address, icon, what it is (tooltip of the navigation). The first is the landing page.
PAGES = [
    ("start.py", "Start", "", "home", "What a promise is, in five minutes, and the way to every page."),
    (
        "coverage.py",
        "Coverage",
        "coverage",
        "target",
        "Where does the threshold go for your image? COAT beside CRC.",
    ),
    (
        "sweep.py",
        "Sweep",
        "sweep",
        "tune",
        "How soft may the knife be? The temperature at which COAT learns.",
    ),
    (
        "own_data.py",
        "Own data",
        "own-data",
        "upload_file",
        "Your model, your promise: bring score maps with masks.",
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
    for file, title, address, icon, what in PAGES
}
st.session_state["ways"] = ways  # pages link to one another through it
page = st.navigation(list(ways.values()))
header.show()
page.run()

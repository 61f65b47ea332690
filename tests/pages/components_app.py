"""An app for the tests of the components: a gallery and both kinds of picture.

Its images are "wave" and "hill" (smooth scores, a lesion that they only partly find) and "ramp", whose scores rise evenly from
left to right, so that one knows where an outline must run. Read with `runpy`, it gives its arrays and shows nothing.
"""

import numpy as np
import streamlit as st

from pages.components import gallery, picture

y, x = np.mgrid[:80, :100]
MAPS = {
    "wave": 3 * np.cos(x / 14) + 2 * np.sin(y / 11),
    "hill": 4 - ((x - 40) ** 2 + (y - 35) ** 2) / 200,
    "ramp": (x - 50) / 10,
}
MASK = (x - 52) ** 2 + (y - 40) ** 2 < 600
IMAGE = np.stack([x * 2, y * 2, x + y], axis=-1).astype(np.uint8)
TAUS = {"CRC": 1.0, "COAT": -1.0, "plug-in": -0.4}


def show() -> None:
    st.set_page_config(page_title="components", layout="wide")
    if st.button("Python takes the ramp"):
        st.session_state.want = "ramp"
    if st.button("Another threshold for CRC"):
        st.session_state.crc = -float("inf")
    items = [
        {"id": name, "image": np.roll(IMAGE, 20 * i, 1), "caption": name, "badge": f"{i} %"}
        for i, name in enumerate(MAPS)
    ]
    chosen = gallery(items, st.session_state.get("want", "wave"), key="shown", label="Test images")
    st.write("chosen:", chosen)
    taus = {**TAUS, "CRC": st.session_state.get("crc", TAUS["CRC"])}
    logits = MAPS[chosen].astype(np.float32)
    picture(IMAGE, logits, taus, mask=MASK, oracle=-0.7, alt="A test picture", key="free")
    picture(IMAGE, logits, taus, mask=MASK, mode="wipe", alt="The same picture", key="wiped")


if __name__ == "__main__":
    show()

"""Streamlit components of our own: a picture whose threshold moves in the browser, and a gallery of thumbnails.

What they are not: pages, or a place where anything is calibrated. They are handed arrays and thresholds and show them. The
`.js` and `.css` files beside this one are plain text that Streamlit gets inline: nothing is built, nothing comes from elsewhere.
"""

from __future__ import annotations

from pages.components.gallery import gallery
from pages.components.picture import picture

__all__ = ["gallery", "picture"]

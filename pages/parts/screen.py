"""What kind of screen the visitor looks at, as far as the browser says so."""

from __future__ import annotations

import streamlit as st


def on_phone() -> bool:
    """Whether the browser calls itself a mobile one. A default for switches, never more: anybody can switch."""
    return "Mobi" in (st.context.headers.get("User-Agent") or "")

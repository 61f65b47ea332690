"""The one server: the course at /, the embed (page, REST and MCP) at /gradio. Start it with ``streamlit run app.py``.

What it is: a launcher. It names the entry script, mounts Gradio in the same process, keeps uploads off the disk and turns an
unexpected error into a sentence.
What it is not: a page. ``pages/shell.py`` is the script that Streamlit runs, so that ``pages/`` is never taken for
Streamlit's legacy folder of pages and a shared link may be a server's very first visit.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import streamlit as st
from starlette.formparsers import MultiPartParser
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse
from starlette.routing import Mount, Route

ROOT = Path(__file__).resolve().parent
if str(ROOT) not in sys.path:  # uvicorn started from another folder
    sys.path.insert(0, str(ROOT))

from pages.embed import Embed  # noqa: E402  needs the line above
from pages.header import DEVICE_PATH  # noqa: E402

LOG = logging.getLogger("plumbline")

embed = Embed()


def keep_uploads_in_memory() -> None:
    """Let Starlette's form parser hold a whole upload in memory: beyond its spool size it would write to a temporary file."""
    limit = st.get_option("server.maxUploadSize") + 1  # MB; one more for the form around the file
    MultiPartParser.spool_max_size = limit * 1024 * 1024


def warm_up() -> None:
    """Import the slow library behind the networks while the first page is on its way."""
    try:
        import core.nets.build  # noqa: F401
    except ImportError:
        LOG.exception("The networks' libraries are not complete; pages that need them will say so.")


@asynccontextmanager
async def lifespan(app: st.App) -> AsyncIterator[None]:
    """Start what lives beside Streamlit, and end it with the server."""
    keep_uploads_in_memory()
    threading.Thread(target=warm_up, name="plumbline-warm-up", daemon=True).start()
    async with embed.lifespan():
        yield


def say_it_in_a_sentence(error: Exception) -> bool:
    """Show a person what happened without a traceback; the log has the whole of it (Streamlit does not log it then)."""
    LOG.error("A page failed.", exc_info=error)
    st.error(
        "This page met an error that it did not expect. Your files and settings are still here: go one step back, or "
        "reload the page. If it comes again, the server's log says where, and the address of this page says how to repeat it.",
        title="Something went wrong here",
        icon=":material/build:",
    )
    return True


async def device(request: Request) -> JSONResponse:
    """Say what the networks run on, as soon as the import that tells is done."""

    def line() -> str:
        from core.nets.build import device_line

        return device_line()

    return JSONResponse({"device": await anyio.to_thread.run_sync(line)})


async def to_the_embed(request: Request) -> RedirectResponse:
    """Send /gradio to /gradio/, with whatever followed the question mark."""
    return RedirectResponse(request.url.replace(path=request.url.path + "/"))


app = st.App(
    ROOT / "pages" / "shell.py",
    lifespan=lifespan,
    on_script_error=say_it_in_a_sentence,
    routes=[Route(DEVICE_PATH, device), Route("/gradio", to_the_embed), Mount("/gradio", app=embed)],
)

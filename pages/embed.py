"""The Gradio page at /gradio: one image in, both outlines and the numbers out; the same as REST endpoint and as MCP tool.

What it is: a thin skin over `core.lab.promise.outline`, whose docstring is the text that REST and MCP clients read.
What it is not: a second implementation. It reads files, calls, and writes down what came back.

Gradio takes seconds to import, so `Embed` builds it on a thread once the server is up, and a request that comes earlier
waits for it instead of failing. Its lifespan runs beside the server's: without it the API would hang while the page looks fine.
"""

from __future__ import annotations

import inspect
import logging
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio

from core.settings import CoverageSettings, Knob, knobs
from pages.parts.embed_answer import gather, show

if TYPE_CHECKING:
    from gradio import Blocks
    from gradio.components import Component
    from starlette.types import ASGIApp, Receive, Scope, Send

LOG = logging.getLogger("plumbline")

PATH = "/gradio"
PATIENCE = 10.0  # seconds after the start in which the first Streamlit page has the processor to itself
FEW = 6  # choices that still stand side by side
KEEP = 600  # seconds that an upload or a picture stays in Gradio's folder

PRIVACY = (
    "Files stay on this server. Gradio needs them as files: they lie in a folder that only this server's account can read, for "
    f"about {KEEP // 60} minutes, and the folder is deleted when the server stops. Nothing is logged or sent elsewhere, and no "
    "usage data is collected."
)
WARNING = (
    "This is a teaching tool, not a medical device. Each model knows its own kind of picture (drawn pictures, colonoscopy frames, dermoscopy "
    "photos, or frames of a few fires) and nothing else."
)


class Embed:
    """An ASGI app that becomes Gradio: on the first request, or a little after the server's start."""

    def __init__(self) -> None:
        self._app: ASGIApp | None = None
        self._asked: anyio.Event
        self._ready: anyio.Event

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Wait until Gradio is there, then hand the request over."""
        self._asked.set()
        await self._ready.wait()
        if self._app is None:
            raise RuntimeError("The embed at /gradio could not be built; the log says why.")
        await self._app(scope, receive, send)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Build and run Gradio while the server runs; its folder is gone afterwards."""
        folder = tempfile.mkdtemp(prefix="plumbline-gradio-")  # readable by this account only
        self._asked, self._ready, done = anyio.Event(), anyio.Event(), anyio.Event()
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._run, folder, done)
                try:
                    yield
                finally:
                    done.set()
                    self._asked.set()
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    async def _run(self, folder: str, done: anyio.Event) -> None:
        with anyio.move_on_after(PATIENCE):
            await self._asked.wait()
        if done.is_set():
            return
        try:
            parent, app = await anyio.to_thread.run_sync(mount, folder)
        except Exception:
            LOG.exception("Gradio could not be built. The course goes on without /gradio.")
            self._ready.set()  # those who wait get an answer instead of waiting for ever
            return
        async with parent.router.lifespan_context(parent):
            self._app = app
            self._ready.set()
            await done.wait()


def mount(folder: str) -> tuple[Any, ASGIApp]:
    """Import Gradio, build the page and make it an ASGI app.

    Args:
        folder: Where Gradio may keep uploads and pictures. Its settings are read from the environment when it is imported.

    Returns:
        The app whose lifespan must run, and the app that answers requests below `PATH`.
    """
    os.environ["GRADIO_TEMP_DIR"] = folder
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
    import gradio as gr
    from fastapi import FastAPI

    parent = FastAPI(openapi_url=None)
    gr.mount_gradio_app(
        parent,
        build(),
        path=PATH,
        mcp_server=True,
        run_history=False,  # it would keep uploads in the visitor's browser
        max_file_size="200mb",
        footer_links=["api"],
        ssr_mode=False,
        theme=theme(),
    )
    return parent, next(route.app for route in parent.routes if getattr(route, "path", None) == PATH)


def theme() -> Any:
    """The course's blue, and fonts of the visitor's own system: Gradio's default fonts come from another server."""
    import gradio as gr

    blue, paler = "#0072B2", "#1C7FC0"
    base = gr.themes.Default(font=["system-ui", "sans-serif"], font_mono=["ui-monospace", "monospace"])
    return base.set(
        button_primary_background_fill=blue,
        button_primary_background_fill_dark=paler,
        button_primary_background_fill_hover="#005A8C",
        button_primary_background_fill_hover_dark=blue,
        slider_color=blue,
        slider_color_dark=paler,
        checkbox_background_color_selected=blue,
        checkbox_background_color_selected_dark=paler,
        block_info_text_color="#4A535C",
        block_info_text_color_dark="#B8C2CC",
    )


def control(knob: Knob, **extra: Any) -> Component:
    """Make a Gradio control from a knob of the settings table.

    Args:
        knob: Its range, default, label and help.
        **extra: Passed to the control.

    Returns:
        A radio for a few choices and a list for many, a slider for a range, a number field where the range is open or logarithmic.
    """
    import gradio as gr

    words: dict[str, Any] = {"label": knob.label, "info": knob.help, "value": knob.default, **extra}
    if len(knob.choices) > FEW:
        return gr.Dropdown(**{"choices": list(knob.choices), **words})
    if knob.choices:
        return gr.Radio(list(knob.choices), **words)
    if knob.low is None or knob.high is None or knob.log:
        return gr.Number(minimum=knob.low, maximum=knob.high, **words)
    return gr.Slider(knob.low, knob.high, step=knob.step, **words)


def build() -> Blocks:
    """Lay out the page."""
    import gradio as gr

    from core.lab.domains import title_of
    from core.lab.promise import models

    table = knobs(CoverageSettings)
    studies = [(title_of(m), m) for m in models()]
    predict = endpoint()
    with gr.Blocks(
        title="Plumbline: one image, one promise", analytics_enabled=False, delete_cache=(60, KEEP)
    ) as page:
        gr.Markdown(
            "# Where does the threshold go for your image?\nDrop in a PNG, JPEG, TIFF, DICOM or NIfTI file, with the lesion's "
            "mask if you have it. Until then a drawn picture is here."
        )
        with gr.Row():
            with gr.Column(scale=2, min_width=300):
                with gr.Row():
                    image = gr.File(label="Image", type="filepath", height=150, min_width=140)
                    mask = gr.File(label="Mask (optional)", type="filepath", height=150, min_width=140)
                model = control(table["model"], choices=studies)
                alpha = control(table["alpha"])
                with gr.Accordion("More", open=False):
                    seed = control(table["seed"])
                    resize = gr.Checkbox(False, label="Resize the mask to the image where their sizes differ")
                button = gr.Button("Outline it", variant="primary")
                words = gr.Markdown(label="In words")
            with gr.Column(scale=3, min_width=300):
                picture = gr.Image(
                    label="CRC orange, COAT blue, truth white",
                    format="png",
                    height=340,
                    interactive=False,
                    buttons=["download", "fullscreen"],  # not "share", which would send it to another server
                )
                numbers = gr.Dataframe(
                    headers=["threshold of", "as a probability", "marked, % of image", "lesion inside, %"],
                    label="Numbers",
                    interactive=False,
                )
        with gr.Accordion("The same as JSON", open=False):
            facts = gr.JSON(label="JSON")
        gr.Markdown(f"{WARNING} {PRIVACY} [To the course](/)")

        call: dict[str, Any] = {
            "fn": predict,
            "inputs": [image, mask, model, alpha, seed, resize],
            "outputs": [picture, numbers, words, facts],
            "concurrency_limit": 2,
            "concurrency_id": "promise",
        }
        button.click(api_name="promise", **call)
        quiet: dict[str, Any] = {
            **call,
            "api_visibility": "private",
            "show_progress": "minimal",
            "trigger_mode": "always_last",
        }
        page.load(**quiet)
        alpha.release(**quiet)
        seed.release(**quiet)
        for changed in (image, mask, model, resize):
            changed.change(**quiet)
    return page


def endpoint() -> Callable[..., tuple[Any, ...]]:
    """The function behind the button, the REST endpoint and the MCP tool, with the core function's own docstring."""
    from core.lab.promise import outline

    def promise(
        image: str | None = None,
        mask: str | None = None,
        model: str = "phantom",
        alpha: float = 0.1,
        seed: int = 0,
        resize_mask: bool = False,
    ) -> tuple[Any, list[list[Any]], str, dict[str, Any]]:
        import gradio as gr

        from core.images import BadImage

        try:
            rgb, truth, name, notes = gather(image, mask, model, resize_mask)
            found = outline(rgb, truth, alpha=float(alpha), model=model, seed=int(seed), name=name)
        except (BadImage, ValueError, FileNotFoundError) as error:
            raise gr.Error(
                str(error), title="This cannot be outlined", duration=None, print_exception=False
            ) from error
        return show(found, int(seed), notes)

    # the core function takes pixels, this one a file: clients know it as "image"
    own = "    resize_mask: Scale a mask of another size to the image by nearest pixel; without it such a mask is refused.\n"
    words = (inspect.getdoc(outline) or "").replace("    rgb:", "    image:", 1)
    promise.__doc__ = words.replace("    name: What to call the image in the answer.\n", own, 1)
    return promise

"""Not a test: a program that uploads a large file to the app in this process and counts the temporary files it makes.

It runs by itself because Streamlit allows one runtime a process. Prints one line of JSON.
"""

from __future__ import annotations

import json
import tempfile

from starlette.formparsers import MultiPartParser
from starlette.testclient import TestClient
from streamlit import config

config.set_option("server.enableXsrfProtection", False)

SIZE = 180 * 1024 * 1024


def main() -> None:
    """Upload twice: with our spool size, and with Starlette's own."""
    import app

    made = []
    real = tempfile.TemporaryFile

    def counting(*args, **kwargs):
        made.append(1)
        return real(*args, **kwargs)

    tempfile.TemporaryFile = counting  # what a spooled file calls when it grows too large
    app.embed.lifespan = no_gradio
    original = MultiPartParser.spool_max_size
    with TestClient(app.app) as client:
        runtime = app.app._runtime
        runtime.is_active_session = lambda session: True
        address = "/_stcore/upload_file/a-session/a-file"
        answer = client.put(address, files={"file": ("large.tif", b"x" * SIZE)})
        held = runtime.uploaded_file_mgr.get_files("a-session", ["a-file"])
        found = {
            "status": answer.status_code,
            "sent": SIZE,
            "bytes": len(held[0].data),
            "temporary_files": len(made),
        }
        MultiPartParser.spool_max_size = original
        client.put(address, files={"file": ("large.tif", b"x" * (4 * 1024 * 1024))})
    print(json.dumps({**found, "temporary_files_without_our_setting": len(made)}))


def no_gradio():
    """Leave the embed out: it is slow and has no part in this."""
    from contextlib import asynccontextmanager

    @asynccontextmanager
    async def nothing():
        yield

    return nothing()


if __name__ == "__main__":
    main()

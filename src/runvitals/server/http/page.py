"""The files of the built page. Other paths are answered with `index.html`: the page has its own router."""

from __future__ import annotations

import gzip
import os
from functools import lru_cache

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from runvitals.server.http.public_path import to_root

FOLDER = os.path.join(os.path.dirname(os.path.dirname(__file__)), "static")
_OF_GUESTS = ("-/shared", "-/embed/")
_NOT_BUILT = """This installation of runvitals has no page: it runs from sources and the page was never built.

Build it with `python hatch_build.py`, or install the package: `pip install '.[server]'`.
The API is available: /api/v1/runs, /api/v1/openapi.json
"""


@lru_cache(100)
def _compress(path: str) -> bytes:
    """A file compressed, once: for all code of the first view this takes 15 ms."""
    with open(path, "rb") as file:
        return gzip.compress(file.read())


def _page(path: str, root: str) -> str:
    """The page for an address from which `root` leads to that of the server: its links begin there."""
    with open(path, encoding="utf-8") as file:
        return file.read().replace('"./', f'"{root}')


def _may_pack(path: str, scope: Scope) -> bool:
    headers = Headers(scope=scope)
    accepted = "gzip" in headers.get("accept-encoding", "") and "range" not in headers
    return accepted and scope["method"] == "GET" and path.endswith((".js", ".css"))


class Page(StaticFiles):
    """Files of the built page. Names in `assets/` contain a hash, so clients may cache them for ever."""

    def __init__(self, folder: str = FOLDER) -> None:
        super().__init__(directory=folder, check_dir=False)
        self._index = os.path.join(folder, "index.html")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the page, or 503 if it was not built."""
        if os.path.isfile(self._index):
            await super().__call__(scope, receive, send)
        else:
            await PlainTextResponse(_NOT_BUILT, status_code=503)(scope, receive, send)

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Return a file, compressed if possible; the page itself for paths that are not files."""
        if path.startswith("assets/"):
            response = await super().get_response(path, scope)
            if isinstance(response, FileResponse) and _may_pack(path, scope):
                packed = await run_in_threadpool(_compress, str(response.path))
                headers = {"content-encoding": "gzip", "vary": "accept-encoding"}
                response = Response(packed, media_type=response.media_type, headers=headers)
            response.headers["cache-control"] = "public, max-age=31536000, immutable"
            return response
        try:
            response = await super().get_response(path, scope)
        except HTTPException as error:
            if error.status_code != 404:
                raise
            response = HTMLResponse(await run_in_threadpool(_page, self._index, to_root(scope)))
        response.headers["cache-control"] = "no-cache"
        if path.startswith(_OF_GUESTS):
            response.headers["x-robots-tag"] = "noindex"
        return response

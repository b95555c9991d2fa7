"""Azure Blob Storage on loopback: Azurite, Microsoft's own emulator, which checks signatures.

It is a package of npm, which `scripts/test` installs into `build/azurite` for CI: `npm install -g azurite`.
"""

from __future__ import annotations

import base64
import hmac
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

ACCOUNT = "devstoreaccount1"
ACCOUNT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The same in every emulator, and documented."""
CONTAINER = "training"
_INSTALLED = Path(__file__).parents[2] / "build/azurite/node_modules/.bin"
_WAIT_S = 60.0
_VERSION = "2021-08-06"


@contextmanager
def azurite() -> Iterator[str]:
    """Yield the endpoint of an emulator with an empty container."""
    folders = (str(_INSTALLED), os.environ.get("PATH", ""), os.path.join(sys.prefix, "bin"))
    path = os.pathsep.join(
        folders
    )  # the last has the Node that `scripts/test` installs, if there is no other
    program = shutil.which("azurite-blob", path=path)
    if program is None:
        pytest.skip("Azurite is not installed: npm install -g azurite")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ("--inMemoryPersistence", "--silent", "--skipApiVersionCheck", "--disableTelemetry")
    process = subprocess.Popen(
        (program, *options, "--blobPort", str(port)),
        stdout=subprocess.DEVNULL,
        env={**os.environ, "PATH": path},
    )
    endpoint = f"http://127.0.0.1:{port}/{ACCOUNT}"
    try:
        _wait_for(port)
        _create(endpoint, CONTAINER)
        yield endpoint
    finally:
        process.terminate()
        process.wait(_WAIT_S)


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + _WAIT_S
    while time.monotonic() < deadline:
        with socket.socket() as connection:
            if connection.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise TimeoutError(f"Azurite does not listen on port {port}")


def _create(endpoint: str, container: str) -> None:
    date = formatdate(usegmt=True)
    headers = f"x-ms-date:{date}\nx-ms-version:{_VERSION}\n"
    text = "PUT" + "\n" * 12 + headers + f"/{ACCOUNT}/{ACCOUNT}/{container}\nrestype:container"
    signature = base64.b64encode(hmac.digest(base64.b64decode(ACCOUNT_KEY), text.encode(), "sha256")).decode()
    sent = {"x-ms-date": date, "x-ms-version": _VERSION, "authorization": f"SharedKey {ACCOUNT}:{signature}"}
    urlopen(Request(f"{endpoint}/{container}?restype=container", method="PUT", headers=sent)).close()

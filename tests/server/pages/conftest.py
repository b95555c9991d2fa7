from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.server.browser import Browser, NoBrowser


@pytest.fixture(scope="session")
def shared_browser() -> Iterator[Browser]:
    """The browser of all modules that one process runs: each opens a window of its own (`Browser.renew`)."""
    with ExitStack() as stack:
        try:
            started = stack.enter_context(Browser())
        except NoBrowser as error:
            pytest.skip(str(error))
        yield started

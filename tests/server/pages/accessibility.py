"""What axe finds wrong with a page: what is hard to read, to operate or to hear."""

from __future__ import annotations

import json
from importlib.resources import files

from tests.server.browser import Browser, keep_picture

_AXE = files("axe_core_python").joinpath("axe.min.js").read_text()


def violations(
    page: Browser,
    dark: bool = False,
    within: str = "html",
    without: str = "",
    tolerated: tuple[str, ...] = (),
) -> list[str]:
    """What axe finds wrong with what is shown.

    Args:
        dark: look at the colours alone, of a page that is looked at in light colours, too.
        within: a selector of the part that is looked at.
        without: a selector of what is not.
        tolerated: impacts of what is left out, such as "minor".
    """
    if not page.evaluate("typeof axe === 'object' && 'run' in axe"):  # loading it takes as long as a look
        page.evaluate(f"{_AXE}; true")
    context = {"include": [[within]], "exclude": [[without]] if without else []}
    options = {"resultTypes": ["violations"], **({"runOnly": ["color-contrast"]} if dark else {})}
    found: list[str] = page.evaluate(
        f"axe.run({json.dumps(context)}, {json.dumps(options)}).then(({{violations}}) => violations"
        f".filter(({{impact}}) => !{json.dumps(tolerated)}.includes(impact))"
        ".map(({id, nodes}) => `${id}: ${nodes[0].html}`))"
    )
    return found


def accessible(page: Browser, dark: bool = False) -> None:
    """Nothing of what is shown is hard to read, to operate or to hear; `dark` is that of `violations`."""
    assert violations(page, dark) == []


def looked_at(page: Browser, name: str) -> None:
    """Check the page on a screen and on a phone, light and dark. For who wants to look: PICTURES=folder."""
    page.wait("document.querySelector('h1')")
    for width in (1280, 390):
        for dark in (False, True):
            page.resize(width, 900, dark)
            page.wait(
                "new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(() => drawn(true))))"
            )
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, f"{name} is {wide} pixels wide"
            keep_picture(page, f"{name}-{width}-{'dark' if dark else 'light'}")
            accessible(page, dark)
    page.resize(1280, 900)

"""Markdown to HTML that is safe to show: profiles, descriptions of teams and projects, comments.

Raw HTML is text, except `<br>`, and `<img>`, which may have a width and a height. What comes out is cleaned
by an allow list all the same: two faults are needed before a script gets into a page, and the page's
`Content-Security-Policy` is a third.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from runvitals.server.user_content.image_links import ImageLinks

MAX_CHARACTERS: Final = 20_000


def html_of(markdown: str, images: ImageLinks, mentions: Collection[str] = ()) -> str:
    r"""Return the HTML of a text.

    Args:
        images: makes the addresses under which this server shows images from elsewhere.
        mentions: names of users and teams that `@name` links to, because the reader may know of them; see
            `mentions_of`.

    Raises:
        ValueError: the text is too long.

    Example:
        >>> html_of("# Hello <b>you</b>", ImageLinks(bytes(32)))
        '<h2>Hello &lt;b&gt;you&lt;/b&gt;</h2>\n'
    """
    if len(markdown) > MAX_CHARACTERS:
        raise ValueError(f"the text is too long; expected at most {MAX_CHARACTERS} characters")
    from runvitals.server.user_content.markdown_renderer import (
        render,  # takes 30 ms: not when a server starts
    )

    return render(markdown, images, mentions)


def mentions_of(markdown: str) -> set[str]:
    """Return the names that a text mentions as `@name`: those that exist and may be read go to `html_of`."""
    from runvitals.server.user_content.markdown_renderer import MENTION  # as late as in `html_of`

    return set(MENTION.findall(markdown[:MAX_CHARACTERS]))

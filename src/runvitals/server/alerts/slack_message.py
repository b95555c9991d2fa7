"""A notification as a message of Slack."""

from __future__ import annotations

from typing import Any, Final

_MAX_BLOCK: Final = 2900
"""Slack rejects a block with a text beyond 3,000 characters."""
_ESCAPES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_MARKS: Final = {"error": "\N{LARGE RED CIRCLE} ", "warning": "\N{LARGE ORANGE CIRCLE} "}


def slack_message(
    title: str, text: str = "", link: str | None = None, label: str = "Open", level: str = "info"
) -> dict[str, Any]:
    """Return the body for an incoming webhook: blocks, and a text for where blocks are not shown.

    What users wrote is escaped, so that `<!channel>` in the name of a run notifies nobody. Blocks of plain
    text also leave `*` and `_` as they are.

    Args:
        link: where the message leads; `label` is the text of the link.
        level: info, warning or error.

    Example:
        >>> slack_message("<!channel> crashed")["text"]
        '&lt;!channel&gt; crashed'
    """
    marked_title = _MARKS.get(level, "") + title
    blocks = [_section("plain_text", part[:_MAX_BLOCK]) for part in (marked_title, text) if part]
    if link is not None:
        blocks.append(_section("mrkdwn", f"<{_escape(link)}|{_escape(label)}>"))
    return {"text": _escape(marked_title), "blocks": blocks}


def _section(kind: str, text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": kind, "text": text}}


def _escape(text: str) -> str:
    return text.translate(_ESCAPES)

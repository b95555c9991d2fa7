"""A report as one HTML file: charts as SVG, images in it, and no scripts."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timezone
from html import escape
from typing import Any, Final

from runvitals.readers.servers.reports.exported_report import ExportedReport
from runvitals.readers.servers.reports.panel_drawings import drawings_of
from runvitals.readers.servers.reports.panel_tables import (
    PanelTable,
    pictures_of,
    problem_of,
    tables_of,
    texts_of,
    title_of,
)
from runvitals.readers.servers.reports.svg import svg_of

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_STYLE: Final = """
body { max-width: 960px; margin: 32px auto; padding: 0 16px; color: #222 }
body { font: 16px/1.5 system-ui, sans-serif }
h1, h2, h3 { line-height: 1.25 }
section { margin: 24px 0; break-inside: avoid }
svg text { font-size: 11px; fill: #555 }
img { max-width: 100% }
table { border-collapse: collapse; display: block; overflow-x: auto }
td, th { padding: 3px 10px; border-bottom: 1px solid #ddd; text-align: left }
pre { padding: 8px 12px; background: #f4f4f4; overflow-x: auto }
.names { display: flex; flex-wrap: wrap; gap: 2px 16px; padding: 0; list-style: none; font-size: 13px }
.names svg { width: 10px; height: 10px }
.soft { color: #666; font-size: 13px }
"""
_SIGNATURES: Final = ((b"\x89PNG", "image/png"), (b"\xff\xd8", "image/jpeg"), (b"GIF8", "image/gif"))
_WEBP: Final = "image/webp"


def html_of(exported: ExportedReport) -> str:
    """Return a report as a page."""
    report = exported.report
    title = escape(report["title"])
    body = "\n".join(_blocks(exported))
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>{_STYLE}</style>
<h1>{title}</h1>
<p>{escape(report["description"])}</p>
<p class="soft">{escape(report["author"] or "")} · {escape(report["entity"])}/{escape(report["project"])} ·
{escape(exported.address)}</p>
{body}
</html>
"""


def _blocks(exported: ExportedReport) -> Iterator[str]:
    for block in exported.report["blocks"]:
        if block["kind"] == "text":
            yield exported.report["html"].get(block["id"], "")
        elif block["kind"] == "image":
            caption = f"<figcaption>{escape(block['caption'])}</figcaption>" if block["caption"] else ""
            yield f"<figure>{_image(exported, block['file'], block['alt'])}{caption}</figure>"
        else:
            for panel, answer in exported.panels(block):
                yield "".join(_panel(exported, panel, answer))


def _panel(exported: ExportedReport, panel: Mapping[str, Any], answer: Mapping[str, Any]) -> Iterable[str]:
    yield f"<section><h3>{escape(title_of(panel))}</h3>"
    if problem := problem_of(panel, answer):
        yield f"<p>{escape(problem)}</p>"
    elif drawings := drawings_of(panel, answer):
        yield from map(svg_of, drawings)
    else:
        yield from map(_table, tables_of(panel, answer))
    for digest, about in pictures_of(answer):
        yield f"<figure>{_image(exported, digest, about)}<figcaption>{escape(about)}</figcaption></figure>"
    for name, text in texts_of(panel, answer):
        yield f"<h4>{escape(name)}</h4><pre>{escape(text)}</pre>" if name else f"<pre>{escape(text)}</pre>"
    yield f'<p class="soft">{as_of(answer)}</p></section>'


def as_of(answer: Mapping[str, Any]) -> str:
    """Return of when the values of a panel are."""
    if "as_of_ms" not in answer:
        return ""
    time = datetime.fromtimestamp(answer["as_of_ms"] / 1000, timezone.utc)
    return f"{'Frozen' if answer['frozen'] else 'As of'} {time:%Y-%m-%d %H:%M} UTC"


def _table(table: PanelTable) -> str:
    head = "".join(f"<th>{escape(text)}</th>" for text in table.head)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>" for row in table.rows
    )
    return f"<table><tr>{head}</tr>{rows}</table>"


def _image(exported: ExportedReport, digest: str, alt: str) -> str:
    content = exported.images.get(digest)
    if content is None:
        return f"<p>{escape(alt or 'An image that is not there any more')}</p>"
    kind = next((kind for start, kind in _SIGNATURES if content.startswith(start)), _WEBP)
    data = base64.b64encode(content).decode("ascii")
    return f'<img alt="{escape(alt)}" src="data:{kind};base64,{data}">'

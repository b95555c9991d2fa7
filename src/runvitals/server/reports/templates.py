"""What new reports begin with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

from runvitals.model.report_panels import new_id
from runvitals.server.reports.document import Document
from runvitals.server.reports.markdown_blocks import blocks_of_markdown

Template = Literal["comparison", "progress", "incident"]
TEMPLATES: Final[dict[Template, str]] = {
    "comparison": "Which change helped?",
    "progress": "Progress of the week",
    "incident": "What went wrong?",
}
"""The titles of reports by the names of templates."""
_PANELS: Final = "<!-- panels -->"
_LOSS: Final = r"(^|[/_.])loss$"
_TEXTS: Final[dict[Template, str]] = {
    "comparison": """## Question

What did you change, and what should it improve?

## Result

> [!NOTE]
> The answer in one sentence, with the figure that supports it.

<!-- panels -->

| | before | after |
|---|---|---|
| loss | | |
| time per step | | |

## What differs between the runs

## Conclusion

- [ ] What to keep
- [ ] What to try next
""",
    "progress": """## In short

- One result or problem a line

## Runs of this week

<!-- panels -->

## What we learned

## Next week

- [ ] What to do first
""",
    "incident": """## Summary

> [!WARNING]
> What happened, which runs it concerned, and what it cost.

## What the runs show

<!-- panels -->

## Timeline

| time | what happened |
|---|---|
| | |

## Cause

## What we change

- [ ] So that it does not happen again
""",
}


def document_of_template(name: Template, entity: str, project: str) -> Document:
    """Return what a report of a project begins with.

    Example:
        >>> document = document_of_template("comparison", "vision", "digits")
        >>> document["title"], document["blocks"][0]["text"]
        ('Which change helped?', '## Question')
    """
    before, _, after = _TEXTS[name].partition(_PANELS)
    grid = _grid(_panels(name), entity, project)
    blocks = [*blocks_of_markdown(before), grid, *blocks_of_markdown(after)]
    return {"title": TEMPLATES[name], "description": "", "blocks": blocks}


def _panels(name: Template) -> Sequence[dict[str, Any]]:
    loss = _panel("line", "Loss", 8, [{"source": "logged", "pattern": _LOSS}], {"pattern": _LOSS})
    table = _panel("table", "Runs", 12)
    if name == "comparison":
        return loss, _panel("config_diff", "Settings", 4), _panel("code_diff", "Code", 12)
    if name == "progress":
        return loss, _panel("findings", "Findings", 4), table
    return loss, _panel("findings", "Findings", 4), _panel("system", "GPUs", 8, _GPUS), table


_GPUS: Final = [{"source": "system", "pattern": r"gpu\..*"}]


def _panel(
    kind: str,
    title: str,
    columns: int,
    queries: Sequence[dict[str, str]] = (),
    settings: dict[str, Any] | None = None,
) -> dict[str, Any]:
    return {
        "kind": kind,
        "title": title,
        "columns": columns,
        "queries": list(queries),
        "settings": settings or {},
    }


def _grid(panels: Sequence[dict[str, Any]], entity: str, project: str) -> dict[str, Any]:
    run_set = {"id": new_id(), "name": "Runs", "entity": entity, "project": project}
    return {
        "id": new_id(),
        "kind": "panels",
        "run_sets": [run_set],
        "panels": [{"id": new_id(), "run_sets": [run_set["id"]], **panel} for panel in panels],
    }

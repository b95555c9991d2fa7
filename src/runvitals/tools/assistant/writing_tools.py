"""The tools of assistants that change runs, which are there only where the user allows it."""

from __future__ import annotations

from typing import Annotated

from mcp.server.mcpserver import Context
from pydantic import Field

from runvitals.readers.servers.connection import ServerError
from runvitals.tools.assistant.bounded_answer import answer
from runvitals.tools.assistant.reading_tools import RunName
from runvitals.tools.assistant.requests import api_of
from runvitals.tools.assistant.runs_api import named_run

Tags = Annotated[list[Annotated[str, Field(min_length=1, max_length=256)]], Field(max_length=100)]


async def change_tags(ctx: Context, run: RunName, add: Tags = [], remove: Tags = []) -> str:  # noqa: B006
    """Add tags to a run, and remove others."""
    api = api_of(ctx)
    called_run = await named_run(api, run)
    changes = {"add_tags": add, "remove_tags": remove}
    body = {"runs": [{"id": called_run.id, "entity": called_run.entity}], "do": "update", "changes": changes}
    (result,) = (await api.call("POST", "/runs/bulk", {}, body, ()))["results"]
    if result.get("error"):
        raise ServerError(result["error"])
    return answer({"id": called_run.id, "tags": (await named_run(api, called_run.reference)).row["tags"]})


async def write_notes(
    ctx: Context,
    run: RunName,
    notes: Annotated[str, Field(description="Markdown.", max_length=100_000)],
    append: Annotated[bool, Field(description="Keep the notes that there are, and add these.")] = True,
) -> str:
    """Write notes about a run."""
    called_run = await named_run(api_of(ctx), run)
    before = called_run.row["notes"] if append else ""
    text = f"{before.rstrip()}\n\n{notes}" if before else notes
    await called_run.send("PATCH", "", {"notes": text})
    return answer({"id": called_run.id, "notes": text})


async def stop_run(ctx: Context, run: RunName) -> str:
    """Ask a run that goes on to stop: its training is interrupted as with Ctrl-C. It cannot be undone."""
    called_run = await named_run(api_of(ctx), run)
    return answer(await called_run.send("POST", "/stop"))

from __future__ import annotations

import json
from typing import Any

from mcp import Client

Answer = Any


async def ask(client: Client, tool: str, **arguments: Any) -> Answer:
    """The data of a tool's answer."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content[0].text
    return json.loads(result.content[0].text)["data"]


async def refusal(client: Client, tool: str, **arguments: Any) -> str:
    """Why a call of a tool failed."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return str(result.content[0].text)

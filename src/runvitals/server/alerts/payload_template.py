"""The JSON that a webhook sends, with `${name}` where values belong."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

MAX_BYTES: Final = 16 * 1024
NAMES: Final = (
    "event_type",
    "event_author",
    "report_id",
    "report_path",
    "report_title",
    "entity_name",
    "project_name",
    "alias",
    "artifact_version",
    "artifact_version_string",
    "artifact_collection_name",
    "ACCESS_TOKEN",
    "run_id",
    "run_name",
    "run_state",
    "run_failure",
    "run_output",
    "run_url",
    "metric_name",
    "metric_value",
    "rule_name",
    "host_name",
    "finding",
    "finding_id",
    "finding_severity",
    "finding_text",
    "finding_advice",
    "finding_device_hours",
)
"""Names that stand for values of the event; `ACCESS_TOKEN` stands for the webhook's access token."""
_PLACE: Final = re.compile(r"\$\{([^{}]*)\}")


def check_payload(text: str, secrets: Collection[str] = ()) -> None:
    """Check a template.

    Args:
        secrets: names of secrets that it may contain besides `NAMES`.

    Raises:
        ValueError: it is no JSON object, or names something unknown. The text repeats nothing of it but the
            unknown name: users write tokens into templates.

    Example:
        >>> check_payload('{"text": "${run_name} ended"}')
    """
    try:
        if len(text.encode()) > MAX_BYTES:
            raise ValueError(f"the payload is too long; expected at most {MAX_BYTES // 1024} KiB")
    except UnicodeEncodeError:
        raise ValueError("the payload has a character that cannot be stored") from None
    try:
        payload = json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise ValueError(f"the payload is no valid JSON: {error.msg} at {where}") from None
    except RecursionError:
        raise ValueError("the payload has too many levels") from None
    if not isinstance(payload, dict):
        raise ValueError("the payload is no JSON object; expected {…}")
    names = {*NAMES, *secrets}
    for is_key, part in _texts(payload):
        if is_key and "${" in part:
            raise ValueError("the payload has ${…} in a name; values belong into values only")
        for name in _PLACE.findall(part):
            if name not in names:
                raise ValueError(
                    f"the payload has an unknown ${{{name[:64]}}}; expected one of {', '.join(sorted(names))}"
                )


def fill_payload(text: str, values: Mapping[str, Any]) -> str:
    """Return the payload with values in their places; a value that there is none of is empty.

    Values become part of texts of the JSON, never of its structure. A text that is one place and nothing else
    becomes the value itself, so that numbers stay numbers.

    Args:
        text: a template that `check_payload` accepts.

    Example:
        >>> values = {"run_id": "a", "metric_value": 1.5}
        >>> fill_payload('{"text": "${run_id} ended", "loss": "${metric_value}"}', {**values})
        '{"text": "a ended", "loss": 1.5}'
    """
    return json.dumps(_fill_part(json.loads(text), values))


def _fill_part(part: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(part, dict):
        return {name: _fill_part(value, values) for name, value in part.items()}
    if isinstance(part, list):
        return [_fill_part(value, values) for value in part]
    if not isinstance(part, str):
        return part
    match_of_all = _PLACE.fullmatch(part)
    if match_of_all is not None:
        return values.get(match_of_all[1], "")
    return _PLACE.sub(lambda match: _text(values.get(match[1], "")), part)


def _text(value: Any) -> str:
    return json.dumps(value) if isinstance(value, dict) else str(value)


def _no_constant(name: str) -> Any:
    raise ValueError(f"the payload has {name}, which is no valid JSON")


def _texts(value: Any) -> Iterator[tuple[bool, str]]:
    """Yield all texts of some JSON, each with whether it is the name of a member."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            yield from ((True, name) for name in part)
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
        elif isinstance(part, str):
            yield False, part

"""MLflow's limits of names and values, with its messages."""

from __future__ import annotations

import posixpath
import re
from typing import Any, Final

from runvitals.server.doors.mlflow.errors import invalid
from runvitals.server.doors.mlflow.requests import SentMessage, wrong_type

MAX_KEY: Final = 250
MAX_PARAM_VALUE: Final = 6000
MAX_TAG_VALUE: Final = 8000
MAX_METRICS: Final = 1000
MAX_PARAMS: Final = 100
MAX_TAGS: Final = 100
MAX_ENTITIES: Final = 1000
MAX_SHOWN: Final = 100
_FIELDS: Final = {"metric": "name", "param": "key", "tag": "key"}
"""What MLflow's messages call the name of each."""
_NAME: Final = re.compile(r"[/\w.\- :]*")


def checked_name(kind: str, name: Any) -> str:
    """Return the name of a metric, parameter or tag.

    Raises:
        MlflowError: it is not allowed.
    """
    if name is not None and not isinstance(name, str):
        raise wrong_type("key", name, "a string")
    if not name:
        raise invalid(f"Missing value for required parameter '{_FIELDS[kind]}'.")
    if not _NAME.fullmatch(name):
        raise invalid(
            f"Invalid value \"{name[:MAX_SHOWN]}\" for parameter '{_FIELDS[kind]}' supplied: Names may only "
            "contain alphanumerics, underscores (_), dashes (-), periods (.), spaces ( ), colon(:) "
            "and slashes (/)."
        )
    if posixpath.normpath(name) != name or name.startswith((".", "/")):
        raise invalid(
            f"Invalid value \"{name[:MAX_SHOWN]}\" for parameter '{_FIELDS[kind]}' supplied: Names may be "
            "treated as files in certain cases, and must not resolve to other names when treated as such. "
            f"This name would resolve to '{posixpath.normpath(name)[:MAX_SHOWN]}'"
        )
    return _check_length(f"{kind} name", name, MAX_KEY)


def _check_length(what: str, text: str, most: int) -> str:
    if len(text) > most:
        raise invalid(
            f"'{what}' with {len(text)} characters exceeds the maximum length of {most} characters: "
            f"{text[:MAX_SHOWN]!r}"
        )
    return text


def checked_param(key: Any, value: Any) -> tuple[str, str]:
    """Return a parameter; a long value is truncated, as by MLflow."""
    name = checked_name("param", key)
    return name, _text(value)[:MAX_PARAM_VALUE]


def checked_tag(key: Any, value: Any, most_value: int = MAX_TAG_VALUE) -> tuple[str, str]:
    """Return a tag; a value that is too long for a tag of a run is truncated, as by MLflow."""
    name = checked_name("tag", key)
    if most_value == MAX_TAG_VALUE:
        return name, _text(value)[:MAX_TAG_VALUE]
    return name, _check_length(f"tags.{name[:MAX_SHOWN]}.value", _text(value), most_value)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise wrong_type("value", value, "a string")
    return value


def sent_tags(sent: SentMessage, name: str = "tags") -> dict[str, str]:
    """Return the tags of a message."""
    return dict(checked_tag(tag.get("key"), tag.get("value")) for tag in sent.objects(name))


def sent_params(sent: SentMessage) -> dict[str, str]:
    """Return the parameters of a message.

    Raises:
        MlflowError: one is there twice.
    """
    params: dict[str, str] = {}
    for param in sent.objects("params"):
        key, value = checked_param(param.get("key"), param.get("value"))
        if key in params:
            raise invalid(f"Duplicate parameter keys have been submitted: [{key!r}]")
        params[key] = value
    return params


def check_counts(metrics: int, params: int, tags: int) -> None:
    """Check how many values, parameters and tags a batch has.

    Raises:
        MlflowError: a batch has too much.
    """
    for what, count, most in (
        ("metrics", metrics, MAX_METRICS),
        ("params", params, MAX_PARAMS),
        ("tags", tags, MAX_TAGS),
    ):
        if count > most:
            raise invalid(
                f"A batch logging request can contain at most {most} {what}. "
                f"Got {count} {what}. Please split up {what} across multiple requests and try again."
            )
    if metrics + params + tags > MAX_ENTITIES:
        raise invalid(
            f"A batch logging request can contain at most {MAX_ENTITIES} metrics, params, and tags "
            f"in total. Got {metrics + params + tags}"
        )

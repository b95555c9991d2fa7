"""Parameters of MLflow, which are texts, as values of a configuration."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from runvitals.model.limits import STEP as EXACT


def from_text(text: str) -> str | int | float:
    """Return a number if the text is exactly how Python writes it, else the text: so it can be read back.

    Example:
        >>> from_text("0.001"), from_text("1e-3"), from_text("007")
        (0.001, '1e-3', '007')
    """
    if len(text) > 40 or not text or text[0] not in "-0123456789":
        return text
    try:
        integer = int(text)
    except ValueError:
        pass
    else:
        return integer if str(integer) == text and abs(integer) <= EXACT else text
    try:
        number = float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) and repr(number) == text else text


def to_text(value: Any) -> str:
    """Return a value of a configuration as MLflow would have it."""
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, int, float)) or value is None:
        return str(value)
    return json.dumps(value)


def params_of(config: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Return the parameters in a configuration, nested ones with dotted names."""
    params: dict[str, str] = {}
    for name, value in config.items():
        if isinstance(value, Mapping) and value:
            params.update(params_of(value, f"{prefix}{name}."))
        else:
            params[f"{prefix}{name}"] = to_text(value)
    return params

"""The configurations of sweeps as they are read from the store, for which no YAML is needed."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Final, cast

from runvitals.model.json_values import DAMAGED
from runvitals.server.sweeps.configuration import Method, SweepConfiguration, parse_configuration

_DAMAGED: Final = SweepConfiguration(cast(Method, DAMAGED), ())


@lru_cache(maxsize=256)
def stored_configuration(encoded: str) -> SweepConfiguration:
    """A configuration from the JSON that is stored: agents ask for it every five seconds."""
    return parse_configuration(json.loads(encoded))


def shown_configuration(encoded: str) -> SweepConfiguration:
    """The same for a list, which one that is damaged must not break: it has the method `damaged`."""
    try:
        return stored_configuration(encoded)
    except ValueError:
        return _DAMAGED

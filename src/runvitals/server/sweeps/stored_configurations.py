"""The configurations of sweeps as they are read from the store, for which no YAML is needed."""

from __future__ import annotations

import json
from functools import lru_cache

from runvitals.sweeps.configuration import SweepConfiguration, parse_configuration


@lru_cache(maxsize=256)
def stored_configuration(encoded: str) -> SweepConfiguration:
    """A configuration from the JSON that is stored: agents ask for it every five seconds."""
    return parse_configuration(json.loads(encoded))

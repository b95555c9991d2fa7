"""The parameters that a sweep has chosen for a run. Loaded only where an agent has started the run.

An agent puts the id of the sweep and the parameters into the environment, so that they reach `init()` in any
process: `SWEEP` and `PARAMETERS`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from runvitals.monitoring.settings.messages import notify

if TYPE_CHECKING:
    from runvitals.sdk.recorded_dict import RecordedDict

SWEEP: Final = "RUNVITALS_SWEEP"
PARAMETERS: Final = "RUNVITALS_SWEEP_PARAMETERS"
RUN_ID: Final = "RUNVITALS_RUN_ID"


def without_place(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `init()` without project, entity and id, which the sweep has chosen."""
    ignored = [name for name in ("project", "entity", "run_id") if name in arguments]
    if ignored:
        notify(f"init(): {', '.join(ignored)} has no effect in a run of a sweep")
    return {name: value for name, value in arguments.items() if name not in ignored}


def apply(run_id: str, config: RecordedDict) -> None:
    """Put the parameters into the config of a run, if it is the run that the agent has started.

    They replace what the script has given under the same names.

    Raises:
        ValueError: the variable is not what an agent has set.
    """
    if sweep_of(run_id) is not None:
        config.update(_parameters(os.environ[PARAMETERS]))


def sweep_of(run_id: str) -> str | None:
    """Return the id of the sweep that a run of this process belongs to; None: to none."""
    if PARAMETERS not in os.environ or os.environ.get(RUN_ID) != run_id:
        return None
    return os.environ.get(SWEEP)


def _parameters(text: str) -> dict[str, Any]:
    try:
        parameters = json.loads(text)
    except ValueError:
        parameters = None
    if not isinstance(parameters, dict):
        raise ValueError(f"{PARAMETERS}={text[:100]!r}: expected a JSON object of parameters")
    return parameters

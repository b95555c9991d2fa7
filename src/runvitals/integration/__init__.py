"""Names of `wandb.integration` and of modules such as `wandb.keras`.

Each module is also one of the package: `runvitals.integration.keras` and `runvitals.keras` have the same
names. They import no framework, except those whose switch they add to it.
"""

from importlib import import_module
from importlib.util import find_spec


def __getattr__(name: str) -> object:
    if not name.startswith("_") and find_spec(f"{__name__}.{name}") is not None:
        return import_module(f"{__name__}.{name}")
    from runvitals.sdk.wandb_names import INTEGRATIONS

    if name in INTEGRATIONS:
        raise AttributeError(
            f"runvitals does not have wandb.integration.{name}; instead: {INTEGRATIONS[name]}"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

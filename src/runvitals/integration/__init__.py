"""Names of `wandb.integration` and of modules such as `wandb.keras`.

Each module is also one of the package: `runvitals.integration.keras` and `runvitals.keras` have the same
names. They import no framework, except those whose switch they add to it.
"""

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any


class _AbsentModules:
    """Says what to use instead of a module that only W&B's package has, when it is imported."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Return None, or raise ModuleNotFoundError: all other finders were asked before."""
        package, _, module = name.rpartition(".")
        if package == __name__ and (instead := _instead_of(module)):
            raise ModuleNotFoundError(_absence(module, instead), name=name)


def _instead_of(module: str) -> str | None:
    from runvitals.sdk.wandb_names import INTEGRATIONS

    return INTEGRATIONS.get(module)


def _absence(module: str, instead: str) -> str:
    return f"runvitals does not have wandb.integration.{module}; instead: {instead}"


sys.meta_path.append(_AbsentModules())


def __getattr__(name: str) -> object:
    if instead := _instead_of(name):
        raise AttributeError(_absence(name, instead))
    if not name.startswith("_") and find_spec(f"{__name__}.{name}") is not None:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

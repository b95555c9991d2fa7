"""The public names of the package."""

from __future__ import annotations

import pkgutil

import runvitals


def test_no_module_hides_a_public_name() -> None:
    """Importing `runvitals.agent` would replace the function `runvitals.agent()` in the package."""
    modules = {module.name for module in pkgutil.iter_modules(runvitals.__path__)}
    assert modules & set(runvitals.__all__) == set()

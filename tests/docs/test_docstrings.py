"""Every public name of the Python API is documented."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import pytest

import runvitals
from runvitals import callbacks
from runvitals.readers import journals as query
from runvitals.readers import servers as client

HAS_NO_DOCSTRING = {"__version__", "config", "summary", "run"}  # values; described in the module


def public() -> Iterator[tuple[str, object]]:
    """(name, object) of the names in `__all__`, and of the members of classes other than callbacks, whose
    methods are defined by the frameworks.
    """
    for module in (runvitals, query, client, callbacks):
        for name in sorted(set(module.__all__) - HAS_NO_DOCSTRING):
            value = getattr(module, name)
            yield f"{module.__name__}.{name}", value
            if inspect.isclass(value) and module is not callbacks:
                for member, found in vars(value).items():
                    if not member.startswith("_") and (callable(found) or isinstance(found, property)):
                        yield f"{module.__name__}.{name}.{member}", found


@pytest.mark.parametrize(("name", "value"), [pytest.param(*pair, id=pair[0]) for pair in public()])
def test_public_name_has_a_docstring(name: str, value: object) -> None:
    assert inspect.getdoc(value)

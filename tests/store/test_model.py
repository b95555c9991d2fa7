"""The model that other stores are compared with keeps the contract itself."""

from __future__ import annotations

import pytest

from tests.store.conformance import Conformance
from tests.store.model import Model


class TestModel(Conformance):
    @pytest.fixture
    def opened(self) -> Model:
        return Model()

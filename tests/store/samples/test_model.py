"""The model, to which other stores are compared, fulfills the interface's rules."""

from __future__ import annotations

import pytest

from tests.store.samples.conformance import Conformance
from tests.store.samples.model import Model


class TestModel(Conformance):
    @pytest.fixture
    def opened(self) -> Model:
        return Model()

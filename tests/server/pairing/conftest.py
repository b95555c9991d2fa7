from tests.store.conftest import folder as folder

"""Programs that tests of registries run with unmodified clients."""

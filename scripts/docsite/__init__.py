"""The documentation site, built and checked by `scripts/docs`: docs/ and a generated reference."""

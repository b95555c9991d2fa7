"""The documentation site, built and checked by `scripts/docs`: docs/ and a reference made from the code."""

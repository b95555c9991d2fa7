"""Files that runs have sent."""

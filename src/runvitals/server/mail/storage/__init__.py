"""The tables of mail that waits."""

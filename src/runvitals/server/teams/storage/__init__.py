"""The tables of teams."""

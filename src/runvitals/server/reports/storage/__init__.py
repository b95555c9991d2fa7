"""The tables of reports."""

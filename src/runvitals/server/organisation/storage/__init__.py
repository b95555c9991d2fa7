"""The tables of the organisation."""

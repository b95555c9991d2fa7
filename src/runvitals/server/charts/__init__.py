"""The values of runs as charts, lines over each other, and tables."""

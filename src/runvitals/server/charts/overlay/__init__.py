"""The same metrics of many runs, as lines that a chart draws over each other."""

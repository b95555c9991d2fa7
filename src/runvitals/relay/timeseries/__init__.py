"""Batches as series with labels, for destinations that are time series databases."""

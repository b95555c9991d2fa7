"""Stands in for Lightning: a Trainer that calls hooks in Lightning's order, on whatever is derived from
`Callback`.
"""

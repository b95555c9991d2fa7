"""Stands in for Lightning: a Trainer that calls hooks in Lightning's order, on what is derived from
`Callback`.
"""

"""Graphcore IPUs, through the vendor's library `gcipuinfo`."""

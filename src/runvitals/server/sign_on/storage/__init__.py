"""The tables of providers and of those who sign in by them."""

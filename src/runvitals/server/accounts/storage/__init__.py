"""The tables of users and of what they sign in with."""

"""Signing in by a provider (OpenID Connect, GitHub), and tokens of other services for service accounts.

`SingleSignOn.start` gives the address of the provider and a cookie; `SingleSignOn.finish` takes what the
browser brings back and says who signed in. `ServiceTokens.account` takes a token that a program shows instead
of a key. Both know neither HTTP requests nor sessions: routes do.
"""

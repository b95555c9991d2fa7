"""SCIM 2.0 (RFC 7643, RFC 7644): an identity provider creates, changes and suspends users, and fills teams.

A SCIM user is a user, whose `active` is the state; a SCIM group is a team. The provider sends the secret of
`POST /api/v1/organisation/scim-secret` as its bearer token.
"""

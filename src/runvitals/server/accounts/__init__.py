"""Users and how they sign in: passwords, passkeys, second factors, sessions, keys."""

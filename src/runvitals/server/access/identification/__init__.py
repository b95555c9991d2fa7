"""Who makes a request: credentials in its headers, and the user, key or link that they stand for."""

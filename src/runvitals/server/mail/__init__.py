"""Sends e-mail about accounts: to confirm an address, to invite, to warn of changes.

A message is built by a function of `messages`, put into the queue of the metadata store by `Mailer.send`, and
sent by the mailer's thread. It survives restarts and hours without a mail server:

    >>> mailer.send(messages.reset_password("ada", token), "ada@example.org", now_ms)
    True

Without a mail server `Mailer.configured` is False, and the inviter copies the link.
"""

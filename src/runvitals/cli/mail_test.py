"""`runvitals server mail-test`: one mail through the configured mail server."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from runvitals.cli.formatting import inert

if TYPE_CHECKING:
    from runvitals.server.database.secret_box import SecretBox
    from runvitals.server.metadata_store import MetadataStore

NAME = "mail-test"


def add_action(actions: Any, add_store: Callable[[argparse.ArgumentParser], None]) -> None:
    """Add the action `mail-test` to the server's command.

    Options before the action stay as they were given: it has no defaults of its own.
    """
    # Without defaults of its own: options before the action stay as they were given.
    parser = actions.add_parser(
        NAME,
        help="send one mail through the configured mail server, and say what failed",
        description=__doc__,
        argument_default=argparse.SUPPRESS,
    )
    parser.add_argument("address", metavar="ADDRESS", help="who gets the mail")
    parser.add_argument("--settings", metavar="FILE", help="the settings that the server is started with")
    parser.add_argument("--secret-keys", metavar="FILE", help="the key file of the server")
    add_store(parser)


def run(
    arguments: argparse.Namespace,
    address: str,
    keys: str,
    fix_settings: Callable[[MetadataStore, str | None, SecretBox], None],
) -> int:
    """Send the mail.

    Args:
        address: address of the metadata store.
        keys: the key file.

    Raises:
        ValueError: a setting is invalid or missing, or this is no e-mail address.
        OSError: the mail server, the metadata store or the key file cannot be used.
    """
    from runvitals.server.database.secret_box import SecretUnreadable, open_secret_box, temporary_secret_box
    from runvitals.server.mail.mailer import Mailer
    from runvitals.server.mail.smtp import MailRefused
    from runvitals.server.metadata_store import open_metadata_store
    from runvitals.store.errors import MetadataStoreError

    box = open_secret_box(keys) if os.path.exists(keys) else temporary_secret_box()
    try:
        with open_metadata_store(address) as metadata_store:
            fix_settings(metadata_store, arguments.settings, box)
            mailer = Mailer(metadata_store, box, lambda: time.time_ns() // 1_000_000)
            settings = mailer.settings()
            if settings is None:
                raise ValueError("there is no mail server: set RUNVITALS_SMTP_URL, or the setting smtp_url")
            mail_server = f"{settings.server.host}:{settings.server.port} ({settings.server.encryption})"
            mailer.send_trial(arguments.address)
    except MetadataStoreError as error:
        raise OSError(str(error)) from None
    except SecretUnreadable as error:
        raise OSError(f"the password of the mail server cannot be decrypted: {error}") from None
    except MailRefused as error:
        what = "the recipient" if error.bad_address else "the mail"
        print(
            f"runvitals: {inert(f'the mail server {mail_server} refused {what}: {error}')}", file=sys.stderr
        )
        return 1
    print(f"{inert(mail_server)} accepted a mail from {inert(settings.sender)} to {inert(arguments.address)}")
    return 0

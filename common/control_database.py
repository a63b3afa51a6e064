"""What the code takes for granted of the control database, asked of a connection."""

from typing import Final

import psycopg

UTF8: Final = "UTF8"


def complaint(connection: psycopg.Connection) -> str:
    """Return why a database cannot be the control database, in a sentence; '' if it can.

    The server says its encoding with each login, so nothing is asked.
    """
    encoding = connection.info.parameter_status("server_encoding")
    # A pooler may not pass it on.
    if not encoding or encoding == UTF8:
        return ""
    return (
        f"The database of DATABASE_URL has the encoding {encoding}; names and mails need UTF-8. "
        "Make another one (CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0)."
    )

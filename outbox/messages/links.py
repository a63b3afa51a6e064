"""Links to pages of the console, for mails."""

from urllib.parse import urlencode

from django.conf import settings


def console_link(page: str, **secrets: str) -> str:
    """Return the URL of a console page.

    secrets: tokens and codes, put behind the ``#``: a browser never sends that part, so they appear
    in no server log and no Referer. The page posts them when the user confirms.
    """
    fragment = f"#{urlencode(secrets)}" if secrets else ""
    return f"{settings.PUBLIC_URL}/console/{page}{fragment}"

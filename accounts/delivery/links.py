"""Links into the console, as mails carry them."""

from urllib.parse import urlencode

from django.conf import settings


def console_link(page: str, **secrets: str) -> str:
    """Give the address of a console page.

    secrets: tokens and codes, put behind the ``#``: a browser sends that part to nobody, so that
    they are in no server's log and no Referer. The page posts them, once somebody has agreed.
    """
    fragment = f"#{urlencode(secrets)}" if secrets else ""
    return f"{settings.PUBLIC_URL}/console/{page}{fragment}"

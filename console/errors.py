"""Errors of the console."""

from common.errors import Forbidden


class CsrfFailed(Forbidden):
    """The console request does not verifiably come from the console's own pages."""

    code = "csrf_failed"
    title = "This request does not come from the console."

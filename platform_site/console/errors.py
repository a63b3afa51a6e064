"""Errors of the console."""

from platform_site.lib.errors import Forbidden


class CsrfFailed(Forbidden):
    """A console request that is not proven to come from the console's own pages."""

    code = "csrf_failed"
    title = "This request does not come from the console."

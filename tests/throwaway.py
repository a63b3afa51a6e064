"""Whether what tests leave in the databases goes with the servers."""

from django.conf import settings

from operations.embedded import throwaway


def is_throwaway() -> bool:
    """Return True if the servers are removed at the end of this run, as those of `make test` are.

    To drop hundreds of databases one by one takes each worker a minute on a busy machine.
    """
    return any(part.startswith(throwaway.PREFIX) for part in settings.DATA_DIR.parts)

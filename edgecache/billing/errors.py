"""What billing refuses."""

from platform_site.lib.errors import Conflict


class RateRefused(Conflict):
    """A rate begins at a full UTC hour in the future, and is not changed afterwards."""

    code = "rate_refused"
    title = "The rate cannot begin then."


class JournalRefused(Conflict):
    """The ledger refuses the journal: an account would be overdrawn."""

    code = "journal_refused"
    title = "The balance does not cover this."

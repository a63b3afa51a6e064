"""What billing refuses."""

from common.errors import Conflict, InvalidRequest, NotFound, TooManyRequests, Unavailable


class RateRefused(Conflict):
    """A rate begins at a full UTC hour in the future, and is not changed afterwards."""

    code = "rate_refused"
    title = "The rate cannot begin then."


class JournalRefused(Conflict):
    """The ledger refuses the journal: an account would be overdrawn."""

    code = "journal_refused"
    title = "The balance does not cover this."


class PayoutRefused(Conflict):
    """There is nothing to pay out: too little, no usable method, or a payout is being sent."""

    code = "payout_refused"
    title = "A payout is not possible now."


class PayoutNotFound(NotFound):
    """The organization has no such payout."""

    code = "payout_not_found"
    title = "There is no such payout."


class PayoutMethodNotFound(NotFound):
    """The organization has no payout method."""

    code = "payout_method_not_found"
    title = "There is no payout method."


class PayoutMethodUnchecked(Unavailable):
    """The provider that checks a payout method does not answer."""

    code = "payout_provider_unavailable"
    title = "The payment provider does not answer."
    retry_after_s = 60


class QuarantineNotFound(NotFound):
    """The organization has no such quarantine."""

    code = "quarantine_not_found"
    title = "There is no such quarantine."


class AppealRefused(Conflict):
    """There is already an appeal or a decision, or nothing to decide."""

    code = "appeal_refused"
    title = "An appeal is not possible now."


class ForfeitRefused(Conflict):
    """The earnings were forfeited or decided about before, or nothing is left of them."""

    code = "forfeit_refused"
    title = "Nothing can be forfeited."


class TopUpsUnavailable(Conflict):
    """This installation has no payment provider: staff books credits."""

    code = "top_ups_unavailable"
    title = "Credits cannot be bought here."


class TopUpsTooOften(TooManyRequests):
    """The organization has opened too many pages for payment without paying."""

    code = "top_ups_too_often"
    title = "Too many purchases were begun."
    retry_after_s = 600


class PaymentProviderUnavailable(Unavailable):
    """The provider of payments does not answer; nothing was charged."""

    code = "payment_provider_unavailable"
    title = "The payment provider does not answer."
    retry_after_s = 60


class WebhookRefused(InvalidRequest):
    """The event has no signature of the payment provider's, or one older than five minutes."""

    code = "webhook_signature_invalid"
    title = "The event's signature is not valid."

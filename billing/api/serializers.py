"""What billing shows and asks for. Amounts in µcr: 1 credit is 1,000,000 µcr."""

from datetime import date, timedelta
from typing import Any, Final

from django.utils import timezone
from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers

from billing.money import MAX_UCR
from common.api.views import StrictSerializer

MAX_PERIOD: Final = timedelta(days=366)
# Far from where dates end: what follows adds and subtracts days.
EARLIEST: Final = date(2000, 1, 1)
LATEST: Final = date(2999, 12, 31)
DEFAULT: Final = timedelta(days=29)


@extend_schema_serializer(many=False)
class BalanceSerializer(serializers.Serializer[Any]):
    """What an organization has as a consumer and as an operator."""

    granted_ucr = serializers.IntegerField(min_value=0, help_text="Granted credits that are left.")
    paid_ucr = serializers.IntegerField(min_value=0, help_text="Paid credits that are left.")
    debt_ucr = serializers.IntegerField(
        min_value=-MAX_UCR, max_value=0, help_text="Fees that no credits covered yet."
    )
    credits = serializers.CharField(help_text="All three together, in credits.")
    held_ucr = serializers.IntegerField(min_value=0, help_text="Earnings within their hold.")
    payable_ucr = serializers.IntegerField(
        min_value=-MAX_UCR,
        help_text="Earnings that can be paid out; below zero after a chargeback.",
    )
    forfeited_ucr = serializers.IntegerField(min_value=0, help_text="Earnings that staff stopped.")
    service = serializers.ChoiceField(
        choices=["ok", "grace", "stopped"],
        help_text="Whether nodes of other operators serve the organization's objects: `ok`; in "
        "`grace` until they stop, for lack of credits; `stopped`.",
    )
    grace_until = serializers.DateTimeField(
        allow_null=True, help_text="When the grace ends; null if none is running."
    )
    stopped_by = serializers.ChoiceField(
        choices=["credits", "spend_cap"], allow_null=True, help_text="Why they stopped."
    )
    currency = serializers.CharField()
    payout_minimum_cents = serializers.IntegerField()


class SpendCapRequestSerializer(StrictSerializer):
    """What the usage of a month may cost."""

    cap_cents = serializers.IntegerField(
        min_value=0,
        max_value=1_000_000_000,
        help_text="In the currency of the balance. 0: nodes of other operators serve nothing.",
    )


@extend_schema_serializer(many=False)
class SpendCapSerializer(serializers.Serializer[Any]):
    """The spend cap, and what this month's usage cost by now."""

    cap_cents = serializers.IntegerField(allow_null=True, help_text="Null: there is no cap.")
    spent_ucr = serializers.IntegerField(help_text="Of this month (UTC), as far as it is charged.")
    is_reached = serializers.BooleanField()


class PeriodSerializer(StrictSerializer):
    """A range of UTC days; by default the last thirty."""

    since = serializers.DateField(required=False, help_text="The first day.")
    until = serializers.DateField(required=False, help_text="The last day.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Fill in the defaults, and limit the span to a year."""
        until: date = attrs.get("until") or timezone.now().date()
        if not EARLIEST <= until <= LATEST:
            raise serializers.ValidationError({"until": "From 2000-01-01 to 2999-12-31."})
        since: date = attrs.get("since") or until - DEFAULT
        if not timedelta(0) <= until - since <= MAX_PERIOD:
            raise serializers.ValidationError({"since": "From one day to a year before `until`."})
        return {"since": since, "until": until}


class PlainRows(serializers.ListSerializer[Any]):
    """Rows whose values already have the fields' types.

    A month of 1,000 buckets has 30,000 rows: converting each value would take most of the response
    time.
    """

    def to_representation(self, data: Any) -> list[Any]:
        """Return the fields of each row unchanged."""
        child: Any = self.child
        names = list(child.fields)
        return [{name: row[name] for name in names} for row in data]


class UsageRowSerializer(serializers.Serializer[Any]):
    """What one bucket used in one day, and what it cost so far."""

    day = serializers.DateField()
    environment = serializers.CharField(help_text="Empty for one that was deleted.")
    bucket = serializers.CharField()
    hits = serializers.IntegerField()
    misses = serializers.IntegerField()
    egress_bytes = serializers.IntegerField()
    storage_byte_hours = serializers.IntegerField()
    charged_ucr = serializers.IntegerField()

    class Meta:
        list_serializer_class = PlainRows


@extend_schema_serializer(many=False)
class BillingUsageSerializer(serializers.Serializer[Any]):
    """Usage by day, environment and bucket."""

    since = serializers.DateField()
    until = serializers.DateField()
    charged_ucr = serializers.IntegerField(help_text="The sum.")
    cache = UsageRowSerializer(many=True)


class CacheHourSerializer(serializers.Serializer[Any]):
    """An environment's traffic in one hour; hours without any are left out."""

    hour = serializers.DateTimeField()
    hits = serializers.IntegerField()
    misses = serializers.IntegerField()
    egress_bytes = serializers.IntegerField()


@extend_schema_serializer(many=False)
class CacheActivitySerializer(serializers.Serializer[Any]):
    """Traffic of the last day by hour. It is imported every five minutes."""

    since = serializers.DateTimeField()
    hours = CacheHourSerializer(many=True)


class SqlUsageRowSerializer(serializers.Serializer[Any]):
    """What one environment used of SQL in one day, and what it cost so far."""

    day = serializers.DateField()
    environment = serializers.CharField(help_text="Empty for one that was deleted.")
    statements = serializers.IntegerField(help_text="Run, with those that failed.")
    milliseconds = serializers.IntegerField(help_text="From the request to its result.")
    egress_bytes = serializers.IntegerField(help_text="Of answers.")
    storage_byte_hours = serializers.IntegerField()
    charged_ucr = serializers.IntegerField()


@extend_schema_serializer(many=False)
class OrganizationUsageSerializer(BillingUsageSerializer):
    """Usage of the cache by day, environment and bucket; of SQL by day and environment."""

    sql = SqlUsageRowSerializer(many=True)


class EarningsRowSerializer(serializers.Serializer[Any]):
    """What one node served in one day, and what it earned so far."""

    day = serializers.DateField()
    node_id = serializers.UUIDField()
    hits = serializers.IntegerField()
    egress_bytes = serializers.IntegerField()
    earned_ucr = serializers.IntegerField()


class EarningsSerializer(serializers.Serializer[Any]):
    """Earnings by day and node."""

    since = serializers.DateField()
    until = serializers.DateField()
    earned_ucr = serializers.IntegerField(help_text="The sum.")
    share = serializers.CharField(help_text="Of paid hit and egress fees, such as 0.7.")
    days = EarningsRowSerializer(many=True)


class StatementQuerySerializer(StrictSerializer):
    """Which month, and from which line on."""

    month = serializers.RegexField(
        r"^20[0-9]{2}-(0[1-9]|1[0-2])$",
        required=False,
        help_text="Such as 2026-11; by default this one.",
    )
    after = serializers.IntegerField(
        min_value=0, required=False, default=0, help_text="`next` of the page before."
    )

    def validate_month(self, value: str) -> date:
        """Return the month's first day."""
        return date.fromisoformat(f"{value}-01")


class StatementLineSerializer(serializers.Serializer[Any]):
    """One usage line that the operator has a share of."""

    usage_id = serializers.CharField()
    used_at = serializers.DateTimeField()
    node_id = serializers.UUIDField(allow_null=True)
    kind = serializers.ChoiceField(choices=["hit", "egress"])
    units = serializers.IntegerField()
    rate_ucr = serializers.IntegerField()
    charge_ucr = serializers.IntegerField(help_text="units × rate_ucr.")
    paid_ucr = serializers.IntegerField(help_text="Of it, paid from paid credits so far.")
    share_ppm = serializers.IntegerField(help_text="The share in millionths.")
    amount_ucr = serializers.IntegerField(help_text="paid_ucr × share_ppm / 1000000, rounded down.")


class StatementSerializer(serializers.Serializer[Any]):
    """A page of an operator's statement, with the month's totals."""

    month = serializers.CharField()
    total_lines = serializers.IntegerField()
    total_paid_ucr = serializers.IntegerField()
    total_amount_ucr = serializers.IntegerField()
    lines = StatementLineSerializer(many=True)
    next = serializers.IntegerField(
        allow_null=True, help_text="For `after`; null on the last page."
    )


class TopUpRequestSerializer(StrictSerializer):
    """How many credits to buy; a cent buys 1,000."""

    amount_cents = serializers.IntegerField(
        min_value=1,
        max_value=1_000_000,
        help_text="In the currency of the balance, from the installation's minimum on.",
    )


class TopUpSerializer(serializers.Serializer[Any]):
    """A purchase of credits that waits for its payment."""

    id = serializers.UUIDField()
    url = serializers.URLField(help_text="The page where it is paid; open it in a browser.")


class PayoutMethodRequestSerializer(StrictSerializer):
    """How to be paid."""

    kind = serializers.CharField(max_length=32, help_text="Such as `manual` or `stripe`.")
    details = serializers.DictField(
        child=serializers.CharField(max_length=200),
        help_text="`account` for `manual`; nothing for `stripe`, which is connected first.",
    )


class ConnectRequestSerializer(StrictSerializer):
    """Where to be paid."""

    kind = serializers.CharField(max_length=32, help_text="Such as `stripe`.")


class ConnectSerializer(serializers.Serializer[Any]):
    """Where an account is completed."""

    url = serializers.URLField(help_text="The provider's page; it works once, for some minutes.")


class PayoutMethodSerializer(serializers.Serializer[Any]):
    """The payout method, with account numbers shortened."""

    kind = serializers.CharField()
    account = serializers.CharField(help_text="Shortened.")
    created_at = serializers.DateTimeField()
    usable_from = serializers.DateTimeField(help_text="A new method rests until then.")
    is_usable = serializers.BooleanField()


class PayoutSerializer(serializers.Serializer[Any]):
    """A payout."""

    id = serializers.UUIDField()
    amount_cents = serializers.IntegerField()
    currency = serializers.CharField()
    state = serializers.ChoiceField(choices=["debited", "sent", "confirmed", "reversed"])
    failure = serializers.CharField(allow_blank=True, help_text="Why it was reversed.")
    reference = serializers.CharField(allow_blank=True, help_text="The provider's.")
    created_at = serializers.DateTimeField()
    changed_at = serializers.DateTimeField()


class QuarantineSerializer(serializers.Serializer[Any]):
    """A time in which a node gets no traffic, and its result."""

    id = serializers.UUIDField()
    node_id = serializers.UUIDField()
    state = serializers.ChoiceField(
        choices=["open", "ended", "forfeited", "appealed", "granted", "rejected"]
    )
    reason = serializers.CharField()
    began_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True, help_text="When it was approved again.")
    forfeited_ucr = serializers.IntegerField(min_value=0, help_text="Unpaid earnings staff took.")
    forfeit_reason = serializers.CharField(allow_blank=True)
    appeal = serializers.CharField(allow_blank=True)
    appealed_at = serializers.DateTimeField(allow_null=True)
    decision_reason = serializers.CharField(allow_blank=True, help_text="About the appeal.")
    decided_at = serializers.DateTimeField(allow_null=True)


class AppealSerializer(StrictSerializer):
    """Why a quarantine was wrong."""

    text = serializers.CharField(max_length=2000, help_text="For the platform's staff.")

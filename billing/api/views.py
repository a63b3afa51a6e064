"""Balances, top-ups, usage, earnings, payouts and quarantines of the caller's organization."""

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.http import StreamingHttpResponse
from django.utils import timezone
from django.utils.module_loading import import_string
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework.decorators import action
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from audit import trail
from billing import ledger, quarantines, statements
from billing.api import csv_statement
from billing.api.serializers import (
    AppealSerializer,
    BalanceSerializer,
    BillingUsageSerializer,
    CacheActivitySerializer,
    ConnectRequestSerializer,
    ConnectSerializer,
    EarningsSerializer,
    OrganizationUsageSerializer,
    PayoutMethodRequestSerializer,
    PayoutMethodSerializer,
    PayoutSerializer,
    PeriodSerializer,
    QuarantineSerializer,
    SpendCapRequestSerializer,
    SpendCapSerializer,
    StatementQuerySerializer,
    StatementSerializer,
    TopUpRequestSerializer,
    TopUpSerializer,
)
from billing.audit_tags import BillingTag
from billing.errors import (
    AppealRefused,
    PaymentProviderUnavailable,
    PayoutMethodNotFound,
    PayoutMethodUnchecked,
    PayoutNotFound,
    PayoutRefused,
    QuarantineNotFound,
    TopUpsTooOften,
    TopUpsUnavailable,
    WebhookRefused,
)
from billing.models.ledger import AccountKind
from billing.models.payouts import Payout
from billing.models.quarantines import Quarantine
from billing.money import PPM, UCR_PER_CENT, credits_text
from billing.payouts import connections, methods
from billing.payouts import requests as payout_requests
from billing.service import spend_caps, states
from billing.topups import requests as topup_requests
from common.api.bodies import read_body
from common.api.views import NO_STORE, RENDERER, CursorPages
from common.api.viewsets import ListAction, PlatformViewSet, RetrieveAction
from common.errors import MalformedJson, PayloadTooLarge, UnsupportedMedia
from common.openapi import shapes
from common.permissions import PUBLIC, needs
from environments.models import Environment

MAX_EVENT_BYTES = 2**18


class BillingResource(PlatformViewSet):
    """A resource of the caller's organization."""

    pagination_class: type[CursorPages] | None = None

    @property
    def organization_id(self) -> int:
        """Return the caller's organization."""
        return self.principal.organization_id

    def actor(self) -> str:
        """Return the user who made the request, for the ledger."""
        return methods.creator_of(self.principal.user_id)


class BalanceViewSet(BillingResource):
    """What the organization has."""

    tag = "Billing"
    access = {"list": needs("billing", "read")}
    serializer_class = BalanceSerializer

    @extend_schema(operation_id="balance", summary="Read the balance")
    def list(self, request: Request) -> Response:
        """Return credits, debts and earnings, and what follows from a lack of credits."""
        found = ledger.balances(self.organization_id)
        kinds = ("granted", "paid", "debt", "held", "payable", "forfeited")
        amounts = {kind: found.get(AccountKind(kind), 0) for kind in kinds}
        state = states.current(self.organization_id)
        return self.respond(
            {f"{kind}_ucr": amount for kind, amount in amounts.items()}
            | {
                "credits": credits_text(sum(amounts[kind] for kind in kinds[:3])),
                "service": state.status,
                "grace_until": states.grace_until(state),
                "stopped_by": state.stopped_by,
                "currency": settings.BILLING.currency,
                "payout_minimum_cents": settings.BILLING.payout_minimum_cents,
            }
        )


class TopUpViewSet(BillingResource):
    """Credits that the organization buys."""

    tag = "Billing"
    access = {"create": needs("billing", "create")}
    errors = {
        "create": (TopUpsUnavailable, TopUpsTooOften, PaymentProviderUnavailable),
    }
    serializer_class = TopUpSerializer
    request_serializers = {"create": TopUpRequestSerializer}

    @extend_schema(summary="Buy credits")
    def create(self, request: Request) -> Response:
        """Open a page where credits are paid for. They are booked once the payment has arrived."""
        opened = topup_requests.request(
            self.organization_id, **self.read(), by=self.actor(), now=timezone.now()
        )
        trail.record_request(
            self.platform_request,
            BillingTag.TOP_UP_CREATE,
            top_up_id=str(opened.top_up.pk),
            amount_cents=opened.top_up.amount_cents,
        )
        return self.respond({"id": opened.top_up.pk, "url": opened.url})


class SpendCapViewSet(BillingResource):
    """What a month's usage may cost."""

    tag = "Billing"
    access = {
        "spend_cap": needs("billing", "read"),
        "replace": needs("billing", "update").fresh(),
        "remove": needs("billing", "delete").fresh(),
    }
    serializer_class = SpendCapSerializer
    request_serializers = {"replace": SpendCapRequestSerializer}
    response_serializers = {"remove": None}
    versions = {"spend_cap": "replace"}

    @extend_schema(summary="Read the spend cap")
    @action(detail=False, url_path="spend-cap")
    def spend_cap(self, request: Request) -> Response:
        """Return the cap, and what this month's usage cost by now."""
        return self.respond(self._shown())

    @extend_schema(summary="Set the spend cap")
    @spend_cap.mapping.put
    def replace(self, request: Request) -> Response:
        """Set the cap of each month. At the cap nodes of other operators stop serving."""
        cap_cents = int(self.read()["cap_cents"])
        self._change(cap_cents)
        trail.record_request(
            self.platform_request, BillingTag.SPEND_CAP_UPDATE, cap_cents=cap_cents
        )
        return self.respond(self._shown())

    @extend_schema(summary="Remove the spend cap")
    @spend_cap.mapping.delete
    def remove(self, request: Request) -> Response:
        """Remove the cap; what it stopped continues immediately."""
        self._change(None)
        trail.record_request(self.platform_request, BillingTag.SPEND_CAP_DELETE)
        return self.no_content()

    def _change(self, cap_cents: int | None) -> None:
        now = timezone.now()
        # A cap that is removed alone would never be refreshed: what it stopped would stay so.
        with transaction.atomic():
            spend_caps.replace(
                self.organization_id,
                cap_cents,
                by=self.actor(),
                now=now,
                check=lambda: self.takes_version() and self.require_match(self._shown()),
            )
            states.refresh(self.organization_id, now=now)

    def _shown(self) -> dict[str, Any]:
        cap = spend_caps.current(self.organization_id)
        spent_ucr = statements.spent(self.organization_id, spend_caps.month_of(timezone.now()))
        return {
            "cap_cents": None if cap is None else cap.cap_ucr // UCR_PER_CENT,
            "spent_ucr": spent_ucr,
            "is_reached": cap is not None and spent_ucr >= cap.cap_ucr,
        }


class BilledUsageViewSet(BillingResource):
    """What the organization used."""

    tag = "Billing"
    access = {"list": needs("billing", "read")}
    serializer_class = OrganizationUsageSerializer
    query_serializers = {"list": PeriodSerializer}

    @extend_schema(operation_id="usage", summary="Read usage and charges")
    def list(self, request: Request) -> Response:
        """Return usage of the cache by day, environment and bucket, and of SQL."""
        period = self.read_query()
        found = used(self.organization_id, **period)
        sql = _named(self.organization_id, statements.used_sql(self.organization_id, **period))
        charged_ucr = found["charged_ucr"] + sum(row["charged_ucr"] for row in sql)
        return self.respond(found | {"charged_ucr": charged_ucr, "sql": sql})


class EarningsViewSet(BillingResource):
    """What the caller's environment used of the cache, and what the organization's nodes earned."""

    tag = "Billing"
    access = {
        "activity": needs("objects", "read"),
        "usage": needs("billing", "read"),
        "earnings": needs("billing", "read"),
        "statement": needs("billing", "read"),
    }
    query_serializers = {
        "usage": PeriodSerializer,
        "earnings": PeriodSerializer,
        "statement": StatementQuerySerializer,
    }
    response_serializers = {
        "activity": CacheActivitySerializer,
        "usage": BillingUsageSerializer,
        "earnings": EarningsSerializer,
        "statement": StatementSerializer,
    }

    def perform_content_negotiation(
        self, request: Request, force: bool = False
    ) -> tuple[BaseRenderer, str]:
        """Note whether a statement is wanted as CSV; problem documents are JSON all the same."""
        self.is_csv = False
        if self.action != "statement":
            return super().perform_content_negotiation(request, force)
        if not force:
            self.is_csv = csv_statement.is_accepted(request)
        return RENDERER, RENDERER.media_type

    @extend_schema(summary="Read the last day's traffic", tags=["Cache"])
    @action(detail=False)
    def activity(self, request: Request) -> Response:
        """Return the environment's traffic of the last 24 hours by hour."""
        hour = timezone.now().replace(minute=0, second=0, microsecond=0)
        since = hour - timedelta(hours=23)
        environment_pk = self.principal.scope.environment_pk
        rows = [
            _zeros(row) for row in statements.hourly(self.organization_id, environment_pk, since)
        ]
        return self.respond({"since": since, "hours": rows})

    @extend_schema(summary="Read the environment's cache usage")
    @action(detail=False)
    def usage(self, request: Request) -> Response:
        """Return the environment's usage of the cache by day and bucket."""
        environment_pk = self.principal.scope.environment_pk
        return self.respond(
            used(self.organization_id, **self.read_query(), environment_pk=environment_pk)
        )

    @extend_schema(summary="Read the earnings of own nodes")
    @action(detail=False)
    def earnings(self, request: Request) -> Response:
        """Return what the organization's nodes served and earned by day."""
        period = self.read_query()
        rows = statements.earned(self.organization_id, **period)
        return self.respond(
            period
            | {
                "days": rows,
                "earned_ucr": sum(row["earned_ucr"] for row in rows),
                "share": str(settings.BILLING.share_ppm / PPM),
            }
        )

    @extend_schema(
        summary="Read an operator's statement",
        responses={
            200: StatementSerializer,
            (200, "text/csv"): {"type": "string", "description": "All lines of the month."},
        },
    )
    @action(detail=False)
    def statement(self, request: Request) -> Response | StreamingHttpResponse:
        """Return a month's lines; with `Accept: text/csv` all of them as CSV."""
        wanted = self.read_query()
        month: date = wanted.get("month") or timezone.now().date().replace(day=1)
        if self.is_csv:
            return csv_statement.response(self.organization_id, month)
        page = statements.statement_page(self.organization_id, month, after=wanted["after"])
        totals = statements.statement_totals(self.organization_id, month)
        is_last = len(page) < statements.PAGE_LINES
        return self.respond(
            {"month": f"{month:%Y-%m}", "lines": page, "next": None if is_last else page[-1]["id"]}
            | {f"total_{name}": value for name, value in totals.items()}
        )


class PayoutMethodViewSet(BillingResource):
    """How the organization is paid."""

    tag = "Payouts"
    access = {
        "payout_method": needs("billing", "read"),
        "replace": needs("billing", "update").fresh(),
        "remove": needs("billing", "delete").fresh(),
        "connect": needs("billing", "update").fresh(),
    }
    errors = {
        "payout_method": (PayoutMethodNotFound,),
        "replace": (PayoutMethodUnchecked,),
        "remove": (PayoutMethodNotFound,),
        "connect": (PayoutRefused, PayoutMethodUnchecked),
    }
    serializer_class = PayoutMethodSerializer
    request_serializers = {
        "replace": PayoutMethodRequestSerializer,
        "connect": ConnectRequestSerializer,
    }
    response_serializers = {"remove": None, "connect": ConnectSerializer}

    @extend_schema(summary="Read the payout method")
    @action(detail=False, url_path="payout-method")
    def payout_method(self, request: Request) -> Response:
        """Return the method, with account numbers shortened."""
        row = methods.current(self.organization_id)
        return self.respond(methods.shown(row, now=timezone.now()))

    @extend_schema(summary="Set the payout method")
    @payout_method.mapping.put
    def replace(self, request: Request) -> Response:
        """Set the method; it rests for three days before it is used, and admins get a mail."""
        now, body = timezone.now(), self.read()
        row = methods.replace(self.organization_id, **body, by=self.actor(), now=now)
        trail.record_request(self.platform_request, BillingTag.PAYOUT_METHOD_UPDATE, kind=row.kind)
        return self.respond(methods.shown(row, now=now))

    @extend_schema(summary="Remove the payout method")
    @payout_method.mapping.delete
    def remove(self, request: Request) -> Response:
        """Remove the method."""
        methods.remove(self.organization_id, now=timezone.now())
        trail.record_request(self.platform_request, BillingTag.PAYOUT_METHOD_DELETE)
        return self.no_content()

    @extend_schema(summary="Connect an account to be paid to")
    @action(detail=False, methods=["post"], url_path="payout-method/connect")
    def connect(self, request: Request) -> Response:
        """Return the provider's page where the organization completes its account there."""
        kind = self.read()["kind"]
        url = connections.connect(self.organization_id, kind, by=self.actor())
        trail.record_request(self.platform_request, BillingTag.PAYOUT_ACCOUNT_CONNECT, kind=kind)
        return self.respond({"url": url}, headers=NO_STORE)


@extend_schema_view(
    list=extend_schema(summary="List payouts"), retrieve=extend_schema(summary="Read a payout")
)
class PayoutViewSet(ListAction, RetrieveAction, BillingResource):
    """Payouts of the organization."""

    tag = "Payouts"
    access = {
        "list": needs("billing", "read"),
        "retrieve": needs("billing", "read"),
        "create": needs("billing", "create").fresh(),
        "cancel": needs("billing", "update").fresh(),
    }
    errors = {
        "create": (PayoutMethodNotFound, PayoutRefused),
        "cancel": (PayoutRefused,),
    }
    serializer_class = PayoutSerializer
    lookup_url_kwarg = "payout_id"
    path_schemas = {"payout_id": shapes.UUID}
    not_found = PayoutNotFound
    pagination_class = CursorPages

    def get_queryset(self) -> QuerySet[Payout]:
        """Return the organization's payouts."""
        return Payout.objects.filter(organization_id=self.organization_id)

    @extend_schema(summary="Request a payout", request=None)
    def create(self, request: Request) -> Response:
        """Pay out everything that is payable, in whole cents."""
        payout = payout_requests.request(self.organization_id, by=self.actor(), now=timezone.now())
        trail.record_request(
            self.platform_request,
            BillingTag.PAYOUT_CREATE,
            payout_id=str(payout.pk),
            amount_cents=payout.amount_cents,
        )
        return self.respond(payout)

    @extend_schema(summary="Cancel a payout", request=None)
    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, payout_id: str) -> Response:
        """Cancel a payout that was not sent yet."""
        known: Payout = self.get_object()
        payout = payout_requests.cancel(
            self.organization_id, UUID(str(known.pk)), by=self.actor(), now=timezone.now()
        )
        trail.record_request(
            self.platform_request, BillingTag.PAYOUT_CANCEL, payout_id=str(payout.pk)
        )
        return self.respond(payout)


@extend_schema_view(
    list=extend_schema(summary="List quarantines"),
    retrieve=extend_schema(summary="Read a quarantine"),
)
class QuarantineViewSet(ListAction, RetrieveAction, BillingResource):
    """Quarantined nodes of the organization."""

    tag = "Cache nodes"
    access = {
        "list": needs("billing", "read"),
        "retrieve": needs("billing", "read"),
        "appeal": needs("billing", "update"),
    }
    errors = {"appeal": (AppealRefused,)}
    serializer_class = QuarantineSerializer
    request_serializers = {"appeal": AppealSerializer}
    lookup_url_kwarg = "quarantine_id"
    path_schemas = {"quarantine_id": shapes.UUID}
    not_found = QuarantineNotFound
    pagination_class = CursorPages

    def get_queryset(self) -> QuerySet[Quarantine]:
        """Return the organization's quarantines."""
        return Quarantine.objects.filter(organization_id=self.organization_id)

    @extend_schema(summary="Appeal against a quarantine")
    @action(detail=True, methods=["post"])
    def appeal(self, request: Request, quarantine_id: str) -> Response:
        """Appeal once against a quarantine and its forfeiture; staff decides."""
        known: Quarantine = self.get_object()
        text = self.read()["text"]
        row = quarantines.appeal(
            self.organization_id,
            UUID(str(known.pk)),
            text,
            by=self.actor(),
            now=timezone.now(),
        )
        trail.record_request(
            self.platform_request, BillingTag.QUARANTINE_APPEAL, quarantine_id=str(row.pk)
        )
        return self.respond(row)


class RawParser(BaseParser):
    """Return the body's bytes, which a signature is about."""

    media_type = "application/json"

    def parse(
        self,
        stream: Any,
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return the body's bytes, although the stubs expect fields.

        Raises PayloadTooLarge (413).
        """
        return read_body(stream, encoding="", limit_bytes=MAX_EVENT_BYTES)


class PaymentWebhookViewSet(PlatformViewSet):
    """What payment providers report."""

    tag = "Billing"
    access = {"stripe": PUBLIC}
    errors = {
        "stripe": (WebhookRefused, MalformedJson, PayloadTooLarge, UnsupportedMedia),
    }
    response_serializers = {"stripe": None}
    pagination_class = None

    @extend_schema(
        summary="Receive an event of Stripe",
        description="Where Stripe sends its events, with its signature; not for clients.",
        request=None,
        parameters=[OpenApiParameter("Stripe-Signature", str, OpenApiParameter.HEADER)],
    )
    @action(detail=False, methods=["post"], parser_classes=[RawParser])
    def stripe(self, request: Request) -> Response:
        """Carry out an event; one that comes again changes nothing."""
        path = settings.PAYMENT_WEBHOOKS.get("stripe")
        body: object = request.data
        if path is None or not isinstance(body, bytes):
            raise WebhookRefused
        import_string(path)(body, request.headers.get("Stripe-Signature", ""))
        return self.no_content()


def used(
    organization_id: int, since: date, until: date, *, environment_pk: int | None = None
) -> dict[str, Any]:
    """Return usage with the environments' ids."""
    found = statements.used(organization_id, since, until, environment_pk=environment_pk)
    rows = _named(organization_id, found)
    charged_ucr = sum(row["charged_ucr"] for row in rows)
    return {"since": since, "until": until, "charged_ucr": charged_ucr, "cache": rows}


def _named(organization_id: int, rows: list[statements.Row]) -> list[statements.Row]:
    """Add the environments' ids to rows of usage."""
    environments = Environment.objects.filter(organization_id=organization_id, deleted_at=None)
    slugs = dict(environments.values_list("pk", "slug"))
    return [row | {"environment": slugs.get(row["environment_pk"], "")} for row in rows]


def _zeros(row: dict[str, Any]) -> dict[str, Any]:
    return {name: 0 if value is None else value for name, value in row.items()}

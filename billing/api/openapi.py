"""The OpenAPI description of the operations of billing."""

from typing import Any, Final

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
from common.errors import MalformedJson, PayloadTooLarge, UnsupportedMedia
from common.openapi import shapes
from common.openapi.operations import Operation, Operations

USAGE: Final[dict[str, Any]] = {
    "since": "2026-11-01",
    "until": "2026-11-30",
    "charged_ucr": 910_000,
    "cache": [
        {
            "day": "2026-11-20",
            "environment": "live",
            "bucket": "assets",
            "hits": 10,
            "misses": 0,
            "egress_bytes": 101_000,
            "storage_byte_hours": 0,
            "charged_ucr": 910_000,
        }
    ],
}
SQL_USAGE: Final[dict[str, Any]] = {
    "day": "2026-11-20",
    "environment": "live",
    "statements": 1200,
    "milliseconds": 5100,
    "egress_bytes": 910_000,
    "storage_byte_hours": 192_000_000,
    "charged_ucr": 0,
}
SPEND_CAP: Final[dict[str, Any]] = {
    "cap_cents": 5000,
    "spent_ucr": 910_000,
    "is_reached": False,
}
NODE_ID: Final = "01a2048c-f077-7117-a3a9-52065e8028db"
METHOD: Final[dict[str, Any]] = {
    "kind": "manual",
    "account": "…3456",
    "created_at": "2026-11-20T10:00:00+00:00",
    "usable_from": "2026-11-23T10:00:00+00:00",
    "is_usable": False,
}
PAYOUT: Final[dict[str, Any]] = {
    "id": "01a2048c-f077-7117-a3a9-52065e8028db",
    "amount_cents": 2500,
    "currency": "USD",
    "state": "debited",
    "failure": "",
    "reference": "",
    "created_at": "2026-11-23T10:00:00+00:00",
    "changed_at": "2026-11-23T10:00:00+00:00",
}
QUARANTINE: Final[dict[str, Any]] = {
    "id": "01a2048c-f077-7117-a3a9-52065e8028db",
    "node_id": NODE_ID,
    "state": "forfeited",
    "reason": "wrong bytes for 3 blobs in 300 looks",
    "began_at": "2026-11-20T10:00:00+00:00",
    "ended_at": None,
    "forfeited_ucr": 637_000,
    "forfeit_reason": "The node altered images.",
    "appeal": "",
    "appealed_at": None,
    "decision_reason": "",
    "decided_at": None,
}
QUARANTINE_PATH: Final = {"quarantine_id": shapes.UUID}
PAYOUT_PATH: Final = {"payout_id": shapes.UUID}

OPERATIONS: Final[Operations] = {
    "GET /v1/balance": Operation(
        tag="Billing",
        response={
            "granted_ucr": 500_000_000_000,
            "paid_ucr": 0,
            "debt_ucr": 0,
            "credits": "500000.000000",
            "held_ucr": 637_000,
            "payable_ucr": 0,
            "forfeited_ucr": 0,
            "service": "ok",
            "grace_until": None,
            "stopped_by": None,
            "currency": "USD",
            "payout_minimum_cents": 2000,
        },
    ),
    "GET /v1/balance/spend-cap": Operation(tag="Billing", response=SPEND_CAP),
    "PUT /v1/balance/spend-cap": Operation(
        tag="Billing", request={"cap_cents": 5000}, response=SPEND_CAP
    ),
    "DELETE /v1/balance/spend-cap": Operation(tag="Billing"),
    "POST /v1/balance/top-ups": Operation(
        tag="Billing",
        problems=(TopUpsUnavailable, TopUpsTooOften, PaymentProviderUnavailable),
        request={"amount_cents": 2000},
        response={
            "id": "01a2048c-f077-7117-a3a9-52065e8028db",
            "url": "https://checkout.stripe.com/c/pay/cs_live_a1b2c3",
        },
    ),
    "POST /v1/billing/webhooks/stripe": Operation(
        tag="Billing", problems=(WebhookRefused, MalformedJson, PayloadTooLarge, UnsupportedMedia)
    ),
    "GET /v1/usage": Operation(tag="Billing", response=USAGE | {"sql": [SQL_USAGE]}),
    "GET /v1/cache/activity": Operation(
        tag="Cache",
        response={
            "since": "2026-11-22T19:00:00Z",
            "hours": [
                {
                    "hour": "2026-11-22T19:00:00Z",
                    "hits": 90,
                    "misses": 10,
                    "egress_bytes": 4_100_000,
                }
            ],
        },
    ),
    "GET /v1/cache/usage": Operation(tag="Billing", response=USAGE),
    "GET /v1/cache/earnings": Operation(
        tag="Billing",
        response={
            "since": "2026-11-01",
            "until": "2026-11-30",
            "earned_ucr": 637_000,
            "share": "0.7",
            "days": [
                {
                    "day": "2026-11-20",
                    "node_id": NODE_ID,
                    "hits": 10,
                    "egress_bytes": 101_000,
                    "earned_ucr": 637_000,
                }
            ],
        },
    ),
    "GET /v1/cache/statement": Operation(
        tag="Billing",
        response={
            "month": "2026-11",
            "total_lines": 1,
            "total_paid_ucr": 1000,
            "total_amount_ucr": 700,
            "lines": [
                {
                    "usage_id": f"{NODE_ID}/hit",
                    "used_at": "2026-11-20T12:00:00+00:00",
                    "node_id": NODE_ID,
                    "kind": "hit",
                    "units": 10,
                    "rate_ucr": 100,
                    "charge_ucr": 1000,
                    "paid_ucr": 1000,
                    "share_ppm": 700_000,
                    "amount_ucr": 700,
                }
            ],
            "next": None,
        },
        streams={"text/csv": {"type": "string", "description": "All lines of the month."}},
    ),
    "GET /v1/cache/payout-method": Operation(
        tag="Payouts", problems=(PayoutMethodNotFound,), response=METHOD
    ),
    "PUT /v1/cache/payout-method": Operation(
        tag="Payouts",
        problems=(PayoutMethodUnchecked,),
        request={"kind": "manual", "details": {"account": "DE00 1234 5678 9012 3456"}},
        response=METHOD,
    ),
    "POST /v1/cache/payout-method/connect": Operation(
        tag="Payouts",
        problems=(PayoutRefused, PayoutMethodUnchecked),
        request={"kind": "stripe"},
        response={"url": "https://connect.stripe.com/setup/e/acct_1OlgaOlgaOlga/Abc"},
    ),
    "DELETE /v1/cache/payout-method": Operation(tag="Payouts", problems=(PayoutMethodNotFound,)),
    "GET /v1/cache/quarantines": Operation(
        tag="Cache nodes", response={"next": None, "previous": None, "results": [QUARANTINE]}
    ),
    "GET /v1/cache/quarantines/{quarantine_id}": Operation(
        tag="Cache nodes",
        path=QUARANTINE_PATH,
        problems=(QuarantineNotFound,),
        response=QUARANTINE,
    ),
    "POST /v1/cache/quarantines/{quarantine_id}/appeal": Operation(
        tag="Cache nodes",
        path=QUARANTINE_PATH,
        problems=(QuarantineNotFound, AppealRefused),
        request={"text": "A faulty switch altered the bytes; it was replaced on 21 November."},
        response=QUARANTINE
        | {
            "state": "appealed",
            "appeal": "A faulty switch altered the bytes; it was replaced on 21 November.",
            "appealed_at": "2026-11-22T10:00:00+00:00",
        },
    ),
    "GET /v1/cache/payouts": Operation(
        tag="Payouts", response={"next": None, "previous": None, "results": [PAYOUT]}
    ),
    "POST /v1/cache/payouts": Operation(
        tag="Payouts", problems=(PayoutMethodNotFound, PayoutRefused), response=PAYOUT
    ),
    "GET /v1/cache/payouts/{payout_id}": Operation(
        tag="Payouts", path=PAYOUT_PATH, problems=(PayoutNotFound,), response=PAYOUT
    ),
    "POST /v1/cache/payouts/{payout_id}/cancel": Operation(
        tag="Payouts", path=PAYOUT_PATH, problems=(PayoutNotFound, PayoutRefused), response=PAYOUT
    ),
}

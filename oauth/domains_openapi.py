"""The OpenAPI description of the operations of domains."""

from typing import Final

from accounts.errors import TooManyAttempts
from common.errors import DnsUnavailable
from common.openapi import shapes
from common.openapi.operations import Operation, Operations
from oauth.errors import DomainTaken, DomainUnproven, TooManyDomains

OPERATIONS: Final[Operations] = {
    "GET /v1/domains": Operation(
        tag="Domains",
        response={
            "next": None,
            "previous": None,
            "results": [
                {
                    "id": "01a2048c-a2c1-771f-b342-1fc047a4c490",
                    "domain": "example.com",
                    "role": "operator",
                    "status": "verified",
                    "record": {
                        "type": "TXT",
                        "name": "_zonal-challenge.example.com",
                        "value": "zonal-domain-verification=Z7ttUHVG7F62HxoAPcWBsw",
                    },
                    "created_at": "2026-11-22T18:37:35.297113Z",
                    "verified_at": "2026-11-22T18:37:35.305023Z",
                }
            ],
        },
    ),
    "POST /v1/domains": Operation(
        tag="Domains",
        problems=(
            DomainTaken,
            TooManyDomains,
            DnsUnavailable,
        ),
        request={"domain": "example.com", "role": "reader"},
        response={
            "id": "01a2048c-a2c1-771f-b342-1fc047a4c490",
            "domain": "example.com",
            "role": "operator",
            "status": "pending",
            "record": {
                "type": "TXT",
                "name": "_zonal-challenge.example.com",
                "value": "zonal-domain-verification=Z7ttUHVG7F62HxoAPcWBsw",
            },
            "created_at": "2026-11-22T18:37:35.297113Z",
            "verified_at": None,
        },
    ),
    "DELETE /v1/domains/{domain_id}": Operation(
        tag="Domains",
        path={"domain_id": shapes.UUID},
    ),
    "POST /v1/domains/{domain_id}/verify": Operation(
        tag="Domains",
        path={"domain_id": shapes.UUID},
        problems=(
            DomainTaken,
            DomainUnproven,
            TooManyAttempts,
            DnsUnavailable,
        ),
        response={
            "id": "01a2048c-a2c1-771f-b342-1fc047a4c490",
            "domain": "example.com",
            "role": "operator",
            "status": "verified",
            "record": {
                "type": "TXT",
                "name": "_zonal-challenge.example.com",
                "value": "zonal-domain-verification=Z7ttUHVG7F62HxoAPcWBsw",
            },
            "created_at": "2026-11-22T18:37:35.297113Z",
            "verified_at": "2026-11-22T18:37:35.305023Z",
        },
    ),
}

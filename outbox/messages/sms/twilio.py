"""Send text messages through Twilio's Messages API.

Source: https://www.twilio.com/docs/messaging/api/message-resource and Twilio's error dictionary.
"""

from http import HTTPStatus
from typing import Final
from urllib.parse import quote

import requests
import structlog
from django.utils import timezone

from common.machine.reasons import reason
from outbox.failures import PermanentFailure, TemporaryFailure, retry_after_s

log = structlog.get_logger(__name__)

# Error codes about the recipient or the text. Other errors may be caused by the account or its
# settings, which an administrator can correct while the message waits.
PERMANENT_CODES: Final = frozenset(
    {
        21211,  # not a valid number
        21214,  # cannot be reached
        21217,  # not a phone number
        21265,  # a short code
        21610,  # has unsubscribed
        21612,  # no route to this number
        21614,  # not a mobile number
        21617,  # the text is too long
        21635,  # a landline
    }
)


def send(
    to: str,
    text: str,
    *,
    account: str,
    username: str,
    password: str,
    sender: str,
    base_url: str,
    timeout_s: float,
) -> None:
    """Pass a text message to Twilio.

    username, password: of an API key, or the account's id and auth token.
    sender: a number, a name, or the id of a messaging service (``MG…``).
    Raises PermanentFailure, TemporaryFailure.
    """
    by = "MessagingServiceSid" if sender.startswith("MG") else "From"
    try:
        response = requests.post(
            f"{base_url}/2010-04-01/Accounts/{quote(account, safe='')}/Messages.json",
            data={"To": to, by: sender, "Body": text},
            auth=(username, password),
            timeout=timeout_s,
            # The API never redirects; no other server must get the recipient and the code.
            allow_redirects=False,
        )
    except requests.Timeout:
        raise TemporaryFailure("twilio_timeout") from None
    except requests.RequestException as exc:
        log.warning("sms_service_unreachable", reason=reason(exc))
        # Its text contains the URL; from None keeps it out of any log.
        raise TemporaryFailure("twilio_away") from None
    if response.status_code not in {HTTPStatus.OK, HTTPStatus.CREATED}:
        raise _failure(response)


def _failure(response: requests.Response) -> PermanentFailure | TemporaryFailure:
    code = _code(response)
    if response.status_code == HTTPStatus.BAD_REQUEST and code in PERMANENT_CODES:
        return PermanentFailure(f"twilio_{code}")
    wait_s = retry_after_s(response.headers.get("Retry-After", ""), now=timezone.now())
    return TemporaryFailure(f"twilio_{code or response.status_code}", retry_after_s=wait_s)


def _code(response: requests.Response) -> int:
    try:
        body = response.json()
    except ValueError:
        return 0
    code = body.get("code") if isinstance(body, dict) else None
    return code if isinstance(code, int) else 0

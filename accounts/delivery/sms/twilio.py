"""Text messages by Twilio's Messages API.

Source: https://www.twilio.com/docs/messaging/api/message-resource and Twilio's error dictionary.
"""

from http import HTTPStatus
from typing import Final
from urllib.parse import quote

import requests
from django.utils import timezone

from accounts.delivery.failures import Delayed, Refused, retry_after_s

# Codes that speak of the recipient or the text. Every other refusal may be a slip in our account
# or its settings, which somebody can repair while the message waits.
FOR_GOOD: Final = frozenset(
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
    """Hand a text message to Twilio.

    username, password: of an API key, or the account's id and auth token.
    sender: a number, a name, or the id of a messaging service (``MG…``).
    Raises Refused and Delayed.
    """
    by = "MessagingServiceSid" if sender.startswith("MG") else "From"
    try:
        response = requests.post(
            f"{base_url}/2010-04-01/Accounts/{quote(account, safe='')}/Messages.json",
            data={"To": to, by: sender, "Body": text},
            auth=(username, password),
            timeout=timeout_s,
            # The API never redirects; whoever does would get the recipient and the code.
            allow_redirects=False,
        )
    except requests.Timeout:
        raise Delayed("twilio_timeout") from None
    except requests.RequestException:
        # Its text holds the URL; from None keeps it out of any log.
        raise Delayed("twilio_away") from None
    if response.status_code not in {HTTPStatus.OK, HTTPStatus.CREATED}:
        raise _failure(response)


def _failure(response: requests.Response) -> Refused | Delayed:
    code = _code(response)
    if response.status_code == HTTPStatus.BAD_REQUEST and code in FOR_GOOD:
        return Refused(f"twilio_{code}")
    wait_s = retry_after_s(response.headers.get("Retry-After", ""), now=timezone.now())
    return Delayed(f"twilio_{code or response.status_code}", retry_after_s=wait_s)


def _code(response: requests.Response) -> int:
    try:
        body = response.json()
    except ValueError:
        return 0
    code = body.get("code") if isinstance(body, dict) else None
    return code if isinstance(code, int) else 0

"""Send questions to the process that owns a transaction.

If this process is the owner, a question is a function call; otherwise it is sent to the owner's
socket. Errors are sent as the name of their class and its arguments.
"""

from collections.abc import Mapping
from typing import Any, Final

import structlog
from django.conf import settings
from django.utils import timezone

from common.errors import FieldError, InternalError, PlatformError
from common.principals import Principal
from sqlgateway.clusters.organization_limits import Quota
from sqlgateway.errors import TransactionElsewhere
from sqlgateway.models import InteractiveTransaction
from sqlgateway.run.parameters import canonical
from sqlgateway.run.requests import parsed
from sqlgateway.transactions.machine import Message, ProcessSocket
from sqlgateway.transactions.open_transactions import OPEN_TRANSACTIONS, Holder, digest_of

# Added to the statement's time limit, for its cancellation and the transport.
EXTRA_S: Final = 10.0

log = structlog.get_logger(__name__)


def check_machine(row: InteractiveTransaction) -> None:
    """Raise TransactionElsewhere if another machine owns a transaction that may be open.

    Afterwards every machine knows that the owner has rolled it back, or has ended.
    """
    if row.label != SOCKET.label and row.active_until > timezone.now():
        raise TransactionElsewhere


def ask(principal: Principal, row: InteractiveTransaction, question: Mapping[str, Any]) -> Message:
    """Return the owner's answer.

    Raises OwnerUnavailable, QueryCancelled if the client disconnects while its statement runs, and
    the errors of the call.
    """
    asked = {**question, "id": str(row.pk), "holder": Holder.of(principal)}
    if SOCKET.is_own(row.owner):
        return _call(asked)
    timeout_s = settings.SQL.timeout_ms / 1000 + EXTRA_S
    # The result of a commit must be read, even if the client has disconnected.
    watches_client = question["call"] == "run"
    answer = SOCKET.ask(row.owner, asked, timeout_s=timeout_s, watches_client=watches_client)
    if "error" in answer:
        raise _error_of(answer["error"])
    return answer


def _call(question: Message) -> dict[str, Any]:
    transaction_id = question["id"]
    OPEN_TRANSACTIONS.check_holder(transaction_id, Holder(*question["holder"]))
    if question["call"] == "run":
        body = question["body"]
        answer, is_repeated = OPEN_TRANSACTIONS.run(
            transaction_id,
            question["number"],
            parsed(body, limits=Quota(question["limits"]["own"])),
            digest=digest_of(canonical(body)),
            request_id=question["request_id"],
        )
        return {"json": answer.decode(), "is_repeated": is_repeated}
    if question["call"] == "xid":
        return {"xid": OPEN_TRANSACTIONS.xid(transaction_id)}
    timeout_ms = question.get("timeout_ms", settings.SQL.timeout_ms)
    return {
        "ending": OPEN_TRANSACTIONS.end(
            transaction_id, commit=question["commit"], timeout_ms=timeout_ms
        )
    }


def _answer(question: Message) -> Message:
    try:
        return _call(question)
    except PlatformError as error:
        return {"error": _as_json(error)}
    except Exception:
        log.exception("sql_transaction_failed")
        return {"error": _as_json(InternalError())}


def _as_json(error: PlatformError) -> dict[str, Any]:
    return {
        "class": type(error).__name__,
        "detail": error.detail,
        "fields": [field.as_json() for field in error.fields],
        "extra": error.extra,
        "retry_after_s": error.retry_after_s,
    }


def _error_of(given: Mapping[str, Any]) -> PlatformError:
    kinds = {kind.__name__: kind for kind in _subclasses(PlatformError)}
    kind = kinds.get(given["class"], InternalError)
    return kind(
        given["detail"],
        fields=[FieldError(**field) for field in given["fields"]],
        extra=given["extra"],
        retry_after_s=given["retry_after_s"],
    )


def _subclasses(kind: type[PlatformError]) -> list[type[PlatformError]]:
    found = [kind]
    for one in kind.__subclasses__():
        found += _subclasses(one)
    return found


SOCKET: Final = ProcessSocket(_answer)

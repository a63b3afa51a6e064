"""The cost of answering a challenge with a TOTP code, compared with a view with one query.

Both are called alternately in this process. The time is that of the server, from the parsed request
to the finished response, including the log line, without the network and the hash of the password.
"""

import gc
import json
import logging
import os
import statistics
import time
from collections.abc import Callable, Mapping
from uuid import UUID

from django.core.handlers.base import BaseHandler
from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.test import RequestFactory, override_settings
from django.urls import path
from django.utils import timezone

from accounts.models import User
from environments.models import Environment
from tests import cast
from tests.twofactor.holder import CHALLENGE, Holder, ask, with_totp
from twofactor.models import Factor
from twofactor.sign_in import pending

ANSWERS_PER_ROUND = 40
COMMON = "django.middleware.common.CommonMiddleware"
requests = RequestFactory(SERVER_NAME="localhost")


def row(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """Read one session's row by its key, as the baseline."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT generation, aal FROM accounts_session WHERE id = %s", [session_id])
        generation, aal = cursor.fetchone()
    return JsonResponse({"generation": generation, "aal": aal})


urlpatterns = [path("row/<uuid:session_id>", row)]


def measure(identity: Mapping[str, str], *, rounds: int, seconds: float) -> None:
    """Print medians in milliseconds and relative to the baseline; `seconds` is not used."""
    _send_logs_nowhere()
    home = cast.organization("Second factor")
    # Two users, because sign-ins end the user's oldest session, which would be the step-up's.
    signing_in, stepping_up = (
        with_totp(cast.member(home, f"{name}@factor.example")) for name in ("one", "two")
    )
    ours, bare = _handler(), _bare_handler()
    actions: dict[str, Callable[[], float]] = {
        "sign-in": lambda: _answer(ours, signing_in, _waiting(signing_in.user)),
        "step-up": lambda: _answer(ours, stepping_up, stepping_up.caller),
        "bare view": lambda: _bare(bare, identity["session"]),
    }
    times: dict[str, list[float]] = {name: [] for name in actions}
    # As the server does after it has loaded the application.
    gc.collect()
    gc.freeze()
    for _ in range(ANSWERS_PER_ROUND * (rounds + 1)):
        for name, action in actions.items():
            times[name].append(action())
    # The first round warms up.
    medians = {name: statistics.median(took[ANSWERS_PER_ROUND:]) for name, took in times.items()}
    for name, median in medians.items():
        ratio, least = median / medians["bare view"], min(times[name])
        print(
            f"TOTP answered, {name}: {median:.2f} ms (at least {least:.2f}), "
            f"{ratio:.1f} times the bare view's"
        )


def _send_logs_nowhere() -> None:
    """Write log lines to /dev/null: they are part of the cost of a request."""
    nowhere = open(os.devnull, "w")  # noqa: PTH123, SIM115 - as long as the process
    for handler in logging.getLogger().handlers:
        if isinstance(handler, logging.StreamHandler):
            handler.setStream(nowhere)


def _handler() -> BaseHandler:
    handler = BaseHandler()
    handler.load_middleware()
    return handler


def _bare_handler() -> BaseHandler:
    with override_settings(MIDDLEWARE=[COMMON]):
        return _handler()


def _waiting(user: User) -> cast.Caller:
    """Return a pending sign-in with a correct password."""
    place = Environment.objects.get(organization_id=user.organization_id, slug="live")
    now = timezone.now()
    waiting = pending.open_pending(user, place, use=pending.CHALLENGE, amr=["pwd"], now=now)
    return cast.Caller(pending.token_for(waiting))


def _answer(handler: BaseHandler, holder: Holder, caller: cast.Caller) -> float:
    challenge_id = ask(caller).body["challenge_id"]
    # A code is accepted once; without this the next answer would have to wait for half a minute.
    Factor.objects.filter(user=holder.user, method="totp").update(last_step=0)
    body = json.dumps({"code": holder.code()})
    where = f"{CHALLENGE}/{challenge_id}/verify"
    return _timed(handler, requests.post(where, body, content_type="application/json"))


def _bare(handler: BaseHandler, session_id: str) -> float:
    request = requests.get(f"/row/{session_id}")
    # BaseHandler reads this first.
    setattr(request, "urlconf", __name__)  # noqa: B010 - unknown to the stubs
    return _timed(handler, request)


def _timed(handler: BaseHandler, request: HttpRequest) -> float:
    started = time.perf_counter()
    answer = handler.get_response(request)
    took_ms = (time.perf_counter() - started) * 1000
    if answer.status_code != 200:
        raise RuntimeError(f"{request.path} answered {answer.status_code}")
    return took_ms

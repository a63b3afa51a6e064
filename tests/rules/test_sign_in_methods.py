"""No sign-in method bypasses the second factor.

Sessions are opened in one place, behind the stages. Each method is a member of ``SignInMethod`` and
has a driver in tests/sign_in_methods, so that a new one is covered or fails here.
"""

import ast
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pyotp
import pytest
from django.core import checks
from django.http import HttpResponse

from accounts.models import Session, User
from accounts.signin import signin
from accounts.signin.signin import SignInAttempt, SignInMethod, StageResponse
from accounts.tokens.signing import header_of
from environments.models import Organization
from tests import conformance, packages
from tests.cast import Answer, Caller, signed_in
from tests.sign_in_methods.driver import EMAIL, Driver, drivers
from tests.twofactor.holder import ask, pending, reply, set_up, with_totp

# The gateway has sessions of its own, with PostgreSQL; it may not import ours (see below).
GATEWAY = frozenset({"sqlgateway"})
DRIVERS = drivers()


def each(wanted: Callable[[Driver], bool]) -> pytest.MarkDecorator:
    """Run a test for each sign-in method."""
    found = [
        pytest.param(driver, id=driver.sign_in_method)
        for driver in DRIVERS.values()
        if wanted(driver)
    ]
    return pytest.mark.parametrize("driver", found)


each_method = each(lambda _: True)
# Ways of users who were there before.
members_ways = each(lambda driver: not driver.makes_account)
first_ways = each(lambda driver: not (driver.method or driver.makes_account))
ways_under_a_policy = each(lambda driver: not (driver.method or driver.makes_organization))
ways_with_a_factor = each(lambda driver: bool(driver.method))


def sources() -> Iterator[tuple[str, str]]:
    for path in packages.sources(without=GATEWAY):
        yield str(path.relative_to(packages.ROOT)), path.read_text()


def callers(name: str) -> set[str]:
    """Return the modules that call a function."""
    call = re.compile(rf"(?<!def )\b{name}\(")
    return {path for path, text in sources() if call.search(text)}


def attempts() -> Iterator[tuple[str, str]]:
    """Return each place that makes a SignInAttempt, and its method."""
    for path, text in sources():
        for node in ast.walk(ast.parse(text)) if "SignInAttempt(" in text else ():
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("SignInAttempt"):
                methods = [
                    ast.unparse(word.value) for word in node.keywords if word.arg == "method"
                ]
                yield path, methods[0] if methods else ""


def test_only_the_end_of_sign_in_opens_sessions() -> None:
    assert callers("open_session") == {"accounts/signin/signin.py"}


def test_only_sign_in_and_switch_create_sessions() -> None:
    # Those of requests are connections.
    connections = callers("requests.Session")
    assert callers("Session") - connections <= {
        "accounts/sessions/sessions.py",
        "accounts/sessions/refresh_rotation.py",
        "accounts/models.py",
    }


def test_tokens_are_created_from_sessions_only() -> None:
    assert callers("pair_for") == {"accounts/sessions/sessions.py"}


def test_the_sql_gateway_has_no_sign_in() -> None:
    for path in (packages.ROOT / "sqlgateway").rglob("*.py"):
        assert not re.search(r"accounts\.(sessions|signin|tokens)", path.read_text()), path


def test_every_sign_in_method_has_a_driver() -> None:
    driven = sorted(driver.sign_in_method for driver in DRIVERS.values())
    missing = set(SignInMethod) - set(driven)
    assert not missing, f"Add tests/sign_in_methods/<name>.py with a DRIVER for {sorted(missing)}."
    assert driven == sorted(SignInMethod)


def test_every_sign_in_method_is_named_by_an_attempt() -> None:
    named = {method for _, method in attempts()}
    assert named == {f"SignInMethod.{method.name}" for method in SignInMethod}, sorted(attempts())


def tokens_in(answer: Answer) -> list[str]:
    """Return every access and refresh token of a response, whatever its name."""
    words = [answer.raw.content.decode(), *map(str, answer.headers.values())]
    words += [cookie.value for cookie in answer.raw.cookies.values()]
    found = re.findall(r"[\w-]+\.[\w-]+\.[\w-]+", " ".join(words))
    return [word for word in found if header_of(word).get("typ") in {"at+jwt", "rt+jwt"}]


def sessions() -> int:
    """Count the user's sessions, except the one of the preparation."""
    return Session.objects.filter(user__email=EMAIL).exclude(agent="test").count()


def assert_nothing_given(answer: Answer) -> None:
    assert tokens_in(answer) == []
    assert sessions() == 0


def assert_in(answer: Answer, *, aal: int) -> None:
    assert answer.status in {200, 201}, answer.body
    assert len(tokens_in(answer)) == 2
    assert sessions() == 1
    who = Caller(answer.body["access_token"]).get("/v1/whoami").body
    assert (who["email"], who["aal"]) == (EMAIL, aal)


def prepared(driver: Driver, home: Organization) -> User:
    user = driver.prepare(home)
    assert user is not None
    return user


@each_method
@pytest.mark.django_db
def test_a_sign_in_method_opens_a_session(driver: Driver, home: Organization) -> None:
    driver.prepare(home)
    assert_in(driver.come_in(), aal=2 if driver.method else 1)


@each_method
@pytest.mark.django_db
def test_a_wrong_proof_opens_no_session(driver: Driver, home: Organization) -> None:
    driver.prepare(home)
    answer = driver.fail()
    assert 400 <= answer.status < 500
    assert_nothing_given(answer)


def halt(request: Any, attempt: SignInAttempt) -> StageResponse:
    """Halt every way, as a stage does."""
    return StageResponse(
        {
            "status": "mfa_enrollment_required",
            "mfa_token": "none",
            "mfa_expires_at": 0,
            "allowed_methods": [f"halted {attempt.method}"],
        }
    )


@each_method
@pytest.mark.django_db
def test_a_stage_can_halt_every_sign_in_method(
    driver: Driver, home: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.prepare(home)
    # The last stage, since some ways begin with what an earlier one has halted.
    monkeypatch.setattr(signin, "STAGES", [*signin.STAGES, halt])
    with conformance.unchecked():  # the document has no sign-up that a stage halts
        answer = driver.come_in()
    assert_nothing_given(answer)
    assert answer.body["allowed_methods"] == [f"halted {driver.sign_in_method}"]


def test_an_installation_without_stages_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "zonal.E020" not in {each.id for each in checks.run_checks(tags=["security"])}
    monkeypatch.setattr(signin, "STAGES", [])
    assert "zonal.E020" in {each.id for each in checks.run_checks(tags=["security"])}


@first_ways
@pytest.mark.django_db
def test_a_due_factor_is_required_before_tokens_are_issued(
    driver: Driver, home: Organization
) -> None:
    holder = with_totp(prepared(driver, home))
    begun = driver.come_in()
    assert begun.body["status"] == "mfa_required"
    assert_nothing_given(begun)
    wrong = reply(ask(pending(begun)), holder.wrong_code())
    assert (wrong.status, wrong.code) == (401, "invalid_code")
    assert_nothing_given(wrong)
    assert_in(reply(ask(pending(begun)), holder.code()), aal=2)


@ways_under_a_policy
@pytest.mark.django_db
def test_a_required_factor_is_set_up_before_a_session_opens(
    driver: Driver, home: Organization
) -> None:
    home.mfa_required, home.mfa_grace_period_days = True, 0
    home.save()
    driver.prepare(home)
    begun = driver.come_in()
    assert begun.body["status"] == "mfa_enrollment_required"
    assert_nothing_given(begun)
    caller = pending(begun)
    secret = set_up(caller).body
    body = {"secret_id": secret["secret_id"], "code": pyotp.TOTP(secret["secret"]).now()}
    assert_in(caller.post("/v1/auth/2fa/totp/verify", body), aal=2)


@ways_with_a_factor
@pytest.mark.django_db
def test_a_factor_that_the_policy_forbids_must_be_replaced(
    driver: Driver, home: Organization
) -> None:
    driver.prepare(home)
    home.refresh_from_db()
    home.mfa_required, home.mfa_grace_period_days = True, 0
    home.mfa_allowed_methods = [m for m in home.mfa_allowed_methods if m != driver.method]
    home.save()
    assert_nothing_given(driver.come_in())


@members_ways
@pytest.mark.django_db
def test_a_disabled_user_cannot_sign_in_by_any_method(driver: Driver, home: Organization) -> None:
    prepared(driver, home)
    User.objects.filter(email=EMAIL).update(is_active=False)
    answer = driver.come_in()
    assert 400 <= answer.status < 500
    assert_nothing_given(answer)


@pytest.mark.django_db
def test_the_matrix_sees_a_token_by_any_name(alice: User) -> None:
    """A token is also found under another name or in a cookie."""
    caller = signed_in(alice)
    raw = HttpResponse(json.dumps({"n": [{"x": caller.refresh_token}]}))
    raw.set_cookie("harmless", caller.access_token)
    answer = Answer(200, None, raw.headers, raw)
    assert tokens_in(answer) == [caller.refresh_token, caller.access_token]

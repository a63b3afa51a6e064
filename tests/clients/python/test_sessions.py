"""Sign-in, refresh, switch and sign-out through the Python client."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from django.conf import settings

import zonal
from tests import cast
from tests.clients.conftest import Platform
from tests.clients.front import Front
from tests.twofactor.holder import Holder, with_totp

REFRESH = ("POST", "/v1/auth/refresh")
EMAIL = "alice@example.com"


@pytest.fixture
def anonymous(front: Front) -> Iterator[zonal.Client]:
    """Return a client that is yet to sign in."""
    with zonal.Client(front.url) as opened:
        yield opened


@pytest.fixture
def holder(platform: Platform) -> Holder:
    """Return a member with an authenticator app."""
    platform.alice.refresh_from_db()
    member = cast.member(platform.home, "totp@example.com", password=cast.PASSWORD)
    return with_totp(member)


def expired(platform: Platform) -> zonal.TokenPair:
    """Return tokens of a new session, the access token of which has expired."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings, "ACCOUNTS", replace(settings.ACCOUNTS, access_ttl_s=-60))
        caller = cast.signed_in(platform.alice)
    return zonal.TokenPair(caller.access_token, caller.refresh_token, 0, 0)


def test_a_password_signs_in_to_an_environment_and_out_again(anonymous: zonal.Client) -> None:
    answer = anonymous.sign_in(EMAIL, cast.PASSWORD, environment="sandbox")
    assert answer.environment.id == "sandbox"
    assert answer.access_token not in repr(answer)
    assert anonymous.whoami().email == EMAIL
    anonymous.switch("live")
    assert anonymous.whoami().environment.id == "live"
    assert anonymous.permissions().roles == ["admin"]
    anonymous.sign_out()
    with pytest.raises(zonal.AuthenticationError, match="not_authenticated"):
        anonymous.whoami()
    with pytest.raises(zonal.ZonalError, match="no session"):
        anonymous.sign_out()


def test_a_wrong_password_is_refused_once(anonymous: zonal.Client, front: Front) -> None:
    with pytest.raises(zonal.AuthenticationError) as caught:
        anonymous.sign_in(EMAIL, "another long sentence")
    assert (caught.value.status, caught.value.code) == (401, "invalid_credentials")
    assert caught.value.request_id
    assert len(front.seen) == 1


def test_a_second_factor_is_asked_for(
    anonymous: zonal.Client, holder: Holder, platform: Platform
) -> None:
    email = "totp@example.com"
    with pytest.raises(zonal.SecondFactorRequiredError) as caught:
        anonymous.sign_in(email, cast.PASSWORD)
    assert "totp" in caught.value.methods
    codes = [holder.wrong_code(), holder.code()]
    asked: list[zonal.Challenge] = []

    def ask(challenge: zonal.Challenge) -> str:
        asked.append(challenge)
        return codes.pop(0)

    anonymous.sign_in(email, cast.PASSWORD, second_factor=ask, method="totp", attempts=2)
    assert [challenge.method for challenge in asked] == ["totp", "totp"]
    assert anonymous.whoami().aal == 2
    with pytest.raises(zonal.AuthenticationError, match="invalid_code"):
        anonymous.sign_in(email, cast.PASSWORD, second_factor=lambda _: holder.wrong_code())


def test_an_expired_token_is_refreshed_once_for_all_that_wait(
    platform: Platform, front: Front
) -> None:
    kept: list[zonal.TokenPair | None] = []
    store = zonal.MemoryStore(expired(platform), on_change=kept.append)
    with zonal.Client(front.url, store=store) as client, ThreadPoolExecutor(8) as pool:
        people = list(pool.map(lambda _: client.whoami().email, range(8)))
        assert people == [EMAIL] * 8
    assert front.seen.count(REFRESH) == 1
    (pair,) = kept
    assert pair is not None
    assert pair == store.load()
    with zonal.Client(front.url, store=zonal.MemoryStore(pair)) as later:
        assert later.whoami().email == EMAIL
    assert front.seen.count(REFRESH) == 1


def test_a_refresh_whose_answer_was_lost_is_repeated(platform: Platform, front: Front) -> None:
    front.refuse(401, "token_expired")
    front.lose()
    with zonal.Client(front.url, store=zonal.MemoryStore(expired(platform))) as client:
        assert client.sql.query("SELECT 1 AS n").rows == [{"n": 1}]
    assert front.seen.count(REFRESH) == 2


def test_what_another_process_has_refreshed_is_used(platform: Platform, front: Front) -> None:
    pair = expired(platform)
    shared = zonal.MemoryStore(pair)
    with (
        zonal.Client(front.url, store=shared) as one,
        zonal.Client(front.url, store=shared) as other,
    ):
        one.whoami()
        other.whoami()
    assert front.seen.count(REFRESH) == 1


def test_a_session_that_another_process_has_switched_goes_on(
    platform: Platform, front: Front
) -> None:
    caller = cast.signed_in(platform.alice)
    shared = zonal.MemoryStore(zonal.TokenPair(caller.access_token, caller.refresh_token, 0, 0))
    with (
        zonal.Client(front.url, store=shared) as one,
        zonal.Client(front.url, store=shared) as other,
    ):
        other.switch("sandbox")
        assert one.whoami().environment.id == "sandbox"
    assert REFRESH not in front.seen
    # Nothing newer is stored, and an older refresh token is not sent: it would end the sign-in.
    with (
        zonal.Client(
            front.url,
            store=zonal.MemoryStore(
                zonal.TokenPair(caller.access_token, caller.refresh_token, 0, 0)
            ),
        ) as late,
        pytest.raises(zonal.AuthenticationError, match="token_superseded"),
    ):
        late.whoami()
    assert REFRESH not in front.seen


def test_a_refresh_that_another_process_was_faster_with_is_no_end(
    platform: Platform, front: Front
) -> None:
    pair = expired(platform)
    elsewhere = zonal.MemoryStore(pair)
    with zonal.Client(front.url, store=elsewhere) as other:
        other.switch("sandbox")
    newest = elsewhere.load()
    # What the file has when the client begins, when it refreshes, and when that was refused.
    stored = [pair, pair, newest]

    class File(zonal.MemoryStore):
        def load(self) -> zonal.TokenPair | None:
            return stored.pop(0)

    with zonal.Client(front.url, store=File()) as client:
        assert client.whoami().environment.id == "sandbox"
    assert front.seen.count(REFRESH) == 1


def test_a_switch_and_a_sign_out_use_the_stored_refresh_token(
    platform: Platform, front: Front
) -> None:
    caller = cast.signed_in(platform.alice)
    shared = zonal.MemoryStore(zonal.TokenPair(caller.access_token, caller.refresh_token, 0, 0))
    with (
        zonal.Client(front.url, store=shared) as one,
        zonal.Client(front.url, store=shared) as other,
    ):
        for _ in range(2):
            front.refuse(401, "token_expired")
            other.whoami()
        assert front.seen.count(REFRESH) == 2
        one.switch("sandbox")
        assert one.whoami().environment.id == "sandbox"
        other.sign_out()
        with pytest.raises(zonal.AuthenticationError, match="session_revoked"):
            one.whoami()


def test_a_session_that_ended_is_not_refreshed_for_ever(platform: Platform, front: Front) -> None:
    pair = expired(platform)
    with zonal.Client(front.url, store=zonal.MemoryStore(pair)) as client:
        client.sign_out()
    with zonal.Client(front.url, store=zonal.MemoryStore(pair)) as client:
        with pytest.raises(zonal.AuthenticationError):
            client.whoami()
        # A token that stays expired ends as well.
        for _ in range(9):
            front.refuse(401, "token_expired")
        with pytest.raises(zonal.AuthenticationError):
            client.whoami()
    assert len(front.faults) == 7
    front.faults.clear()


def test_a_token_alone_is_never_refreshed(platform: Platform, front: Front) -> None:
    with zonal.Client(front.url, token=expired(platform).access_token) as client:
        with pytest.raises(zonal.AuthenticationError, match="token_expired"):
            client.whoami()
        assert len(front.seen) == 1


@pytest.mark.parametrize(
    "url",
    [
        "http://zonal.example.com",
        "zonal.example.com",
        "ftp://localhost",
        "https://me@zonal.example.com",
        "http://127.0.0.1.example.com",
    ],
)
def test_a_url_that_would_leak_tokens_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"URL|clear"):
        zonal.Client(url, token="secret")


def test_a_path_cannot_lead_the_token_to_another_host(client: zonal.Client, front: Front) -> None:
    for path in ("//evil.example.com/v1", "https://evil.example.com/", "v1/whoami"):
        with pytest.raises(ValueError, match="slash"):
            client.request("GET", path)
    assert front.seen == []
    assert client.request("GET", "/v1/whoami")["email"] == EMAIL


def test_a_redirect_is_not_followed(client: zonal.Client, front: Front) -> None:
    front.answer(302, b"", Location="https://evil.example.com/")
    with pytest.raises(zonal.ProblemError, match="http_302"):
        client.whoami()

"""What social-core can and cannot reach through our strategy and storage."""

import subprocess
import sys
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.apps import apps
from django.contrib.sessions.models import Session as DjangoSession
from django.test import Client
from pytest_django import Settings

from accounts.models import User
from oauth.providers import configured
from oauth.providers.social_core import OAuthStorage, TransactionStrategy
from tests.cast import HANDLER
from tests.oauth.conftest import BASE
from tests.oauth.fake_providers.google import GoogleServer
from tests.oauth.fake_providers.server import s256
from tests.oauth.support import OAuthFlow

pytestmark = pytest.mark.slow


def test_the_callback_url_does_not_follow_the_host_header(
    google: GoogleServer, settings: Settings
) -> None:
    settings.ALLOWED_HOSTS = ["*"]
    client = Client(headers={"host": "other.example.com", "x-forwarded-host": "other.example.com"})
    client.handler = HANDLER
    answer = client.get("/v1/auth/oauth/google/start", {"code_challenge": s256("x" * 43)})
    sent = dict(parse_qsl(urlsplit(answer.headers["Location"]).query))
    assert sent["redirect_uri"] == f"{BASE}/v1/auth/oauth/google/callback"
    assert strategy().build_absolute_uri("/somewhere") == f"{BASE}/somewhere"


def test_a_sign_in_neither_reads_nor_writes_a_django_session(google: GoogleServer) -> None:
    flow = OAuthFlow("google")
    assert flow.sign_in().status == 200
    assert "sessionid" not in flow.browser.cookies
    assert not DjangoSession.objects.exists()


def test_a_callback_parameter_outside_of_the_list_does_not_reach_social_core() -> None:
    given = {"code": "c", "state": "s", "client_id": "evil", "redirect_state": "x"}
    assert strategy(callback=given).request_data() == {"code": "c", "state": "s"}


def test_django_settings_are_not_settings_of_social_core(settings: Settings) -> None:
    settings.SOCIAL_AUTH_GOOGLE_KEY = settings.SOCIAL_AUTH_KEY = settings.KEY = "evil"
    assert strategy().setting("KEY", "default") == "default"
    assert strategy(options={"KEY": "ours"}).setting("KEY") == "ours"


def test_the_session_of_social_core_is_the_transactions(google: GoogleServer) -> None:
    session: dict[str, Any] = {}
    configured.backend("google", session=session, state="the-state").auth_url()
    assert session["google_oauth2_state_the-state"]["state"] == "the-state"


def test_an_email_address_associates_no_identity(alice: User) -> None:
    assert not OAuthStorage.user.get_users_by_email(alice.email).exists()


@pytest.mark.django_db
def test_social_core_cannot_create_users_or_identities() -> None:
    storage: Any = OAuthStorage
    with pytest.raises(AttributeError):
        storage.user.create_social_auth(None, "1", "google")
    with pytest.raises(AttributeError):
        storage.association.store("https://x", None)


def test_social_django_is_not_installed_and_its_models_are_not_loaded() -> None:
    assert not apps.is_installed("social_django")
    script = (
        "import sys, django; django.setup(); import oauth.views; "
        "print('social_django.models' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


def strategy(
    options: dict[str, Any] | None = None, callback: dict[str, str] | None = None
) -> TransactionStrategy:
    """Return the strategy of a transaction."""
    return TransactionStrategy(options or {}, session={}, callback=callback)

"""Passkeys belong to app.example.com here."""

import pytest
from pytest_django import Settings

from accounts.models import User
from tests.twofactor.webauthn.authenticator import ORIGIN
from tests.twofactor.webauthn.holder import KeyHolder, with_passkey


@pytest.fixture(autouse=True)
def _origins(settings: Settings) -> None:
    settings.WEBAUTHN_ORIGINS = (
        ORIGIN,
        "https://example.com",
        "https://notexample.com",
        "https://other.example.org",
    )
    settings.WEBAUTHN_RP_ID = ""


@pytest.fixture
def key_holder(alice: User) -> KeyHolder:
    """Give Alice with a passkey."""
    return with_passkey(alice)

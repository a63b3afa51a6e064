"""Passkeys belong to app.example.com here."""

from dataclasses import replace

import pytest
from pytest_django import Settings

from accounts.models import User
from tests.twofactor.webauthn.authenticator import ORIGIN
from tests.twofactor.webauthn.holder import KeyHolder, with_passkey


@pytest.fixture(autouse=True)
def _origins(settings: Settings) -> None:
    settings.TWOFACTOR = replace(
        settings.TWOFACTOR,
        webauthn_origins=(
            ORIGIN,
            "https://example.com",
            "https://notexample.com",
            "https://other.example.org",
        ),
        webauthn_rp_id="",
    )


@pytest.fixture
def key_holder(alice: User) -> KeyHolder:
    """Return Alice with a passkey."""
    return with_passkey(alice)

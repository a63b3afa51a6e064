"""Alice with a password and a proven address; Bob, with the same password."""

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest
from django.utils import timezone
from pytest_django import Settings

from accounts import passwords
from accounts.models import User
from environments.models import Organization
from tests.cast import PASSWORD, member
from tests.twofactor.holder import Holder, with_totp


def _proven(user: User) -> User:
    user.email_verified_at = timezone.now()
    user.save(update_fields=["email_verified_at"])
    return user


@pytest.fixture
def alice(home: Organization) -> User:
    return _proven(member(home, "alice@example.com", password=PASSWORD))


@pytest.fixture
def bob(home: Organization) -> User:
    return _proven(member(home, "bob@example.com", role="reader", password=PASSWORD))


@pytest.fixture
def holder(alice: User) -> Holder:
    return with_totp(alice)


@pytest.fixture
def sms(settings: Settings) -> None:
    """Have text messages queued; nothing sends them."""
    settings.SMS_BACKEND = "outbox.messages.sms.file.send"


@pytest.fixture
def hashes() -> Iterator[list[str]]:
    """Return the Argon2 computations made."""
    done: list[str] = []
    hasher = passwords.TunedArgon2Hasher
    verify_, encode = hasher.verify, hasher.encode

    def counted_verify(self: Any, *args: Any) -> Any:
        done.append("verify")
        return verify_(self, *args)

    def counted_encode(self: Any, *args: Any) -> Any:
        done.append("encode")
        return encode(self, *args)

    with (
        patch.object(hasher, "verify", counted_verify),
        patch.object(hasher, "encode", counted_encode),
    ):
        yield done

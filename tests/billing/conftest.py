"""Billing without first credits, so that amounts in tests are those that the test gave."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from pytest_django import Settings

from billing import ledger


@pytest.fixture(autouse=True)
def billing(db: None, settings: Settings) -> Iterator[None]:
    """Set rates and shares; after the test the ledger adds up."""
    settings.BILLING = replace(settings.BILLING, welcome_credits=0, share_ppm=700_000)
    yield
    assert ledger.verify().fault == ""


@pytest.fixture
def switched_off(settings: Settings) -> None:
    """Turn the cache off: there is no brain to import from."""
    settings.CACHE = replace(settings.CACHE, is_enabled=False)

"""Common steps of users on the pages."""

import re
import time
from datetime import timedelta

import pyotp
from django.utils import timezone
from playwright.sync_api import expect

from accounts.models import Session
from tests.console.browser import Visitor

EMAIL = "dora@example.com"
PASSWORD = "seven quiet lakes"


def begin_sign_up(visitor: Visitor, email: str = EMAIL) -> None:
    """Sign up on the page, up to the text about the new organization."""
    visitor.go("/console/sign-up")
    visitor.fill("Organization optional", "Lakes & Sons")
    visitor.fill("E-mail", email)
    visitor.fill("Password", PASSWORD)
    visitor.press("Create")
    visitor.sees("Your organization was created")


def sign_up(visitor: Visitor, email: str = EMAIL) -> None:
    """Sign up on the page, and open the console."""
    begin_sign_up(visitor, email)
    visitor.page.get_by_role("link", name="Open the console").click()
    visitor.is_at("/console/")


def enter_password(visitor: Visitor, password: str = PASSWORD) -> None:
    """Enter the address and the password on the sign-in page."""
    visitor.go("/console/sign-in")
    visitor.fill("E-mail", EMAIL)
    visitor.fill("Password", password)
    visitor.press("Sign in")


def sign_out(visitor: Visitor) -> None:
    """Sign out; on a narrow screen, in the drawer."""
    drawer = visitor.page.get_by_role("button", name="Navigation", exact=True)
    if drawer.is_visible():
        drawer.click()
    visitor.press("Sign out")
    visitor.is_at("/console/sign-in")


def code(seed: str) -> str:
    """Return the code that an app shows."""
    return pyotp.TOTP(seed).now()


def next_code(seed: str) -> str:
    """Return the code that an app shows next, since each is accepted once."""
    return pyotp.TOTP(seed).at(int(time.time()), counter_offset=1)


def begin_app(visitor: Visitor) -> str:
    """Begin to set up an authenticator app; return the seed that the page shows."""
    visitor.press("Set up: Authenticator app")
    key = visitor.page.locator("#totp-key")
    expect(key).to_have_text(re.compile("[A-Z2-7 ]{32,}"))
    return (key.text_content() or "").replace(" ", "")


def set_up_app(visitor: Visitor) -> tuple[str, list[str]]:
    """Set up an authenticator app by its key; return the seed and the backup codes."""
    visitor.go("/console/security")
    seed = begin_app(visitor)
    visitor.fill("Code", code(seed))
    visitor.press("Turn on")
    return seed, keep_backup_codes(visitor)


def keep_backup_codes(visitor: Visitor) -> list[str]:
    """Return the backup codes that the page shows, and continue."""
    visitor.sees("Keep your backup codes")
    codes = visitor.page.locator("#backup-codes-list li").all_text_contents()
    visitor.press("I have saved them")
    expect(visitor.page.get_by_role("heading", name="Security", exact=True)).to_be_visible()
    visitor.settle()
    return codes


def write_sql(visitor: Visitor, text: str) -> None:
    """Replace the editor's text on the SQL page."""
    visitor.page.get_by_role("textbox", name="SQL").focus()
    visitor.page.keyboard.press("Control+a")
    visitor.page.keyboard.insert_text(text)


def run_sql(visitor: Visitor, text: str) -> None:
    """Write a text on the SQL page, and run it."""
    write_sql(visitor, text)
    visitor.press("Run")


def age_proofs() -> None:
    """Make the last proof of every session an hour old."""
    earlier = timezone.now() - timedelta(hours=1)
    Session.objects.update(auth_time=earlier)
    Session.objects.exclude(mfa_time=None).update(mfa_time=earlier)

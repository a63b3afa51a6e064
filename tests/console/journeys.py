"""Common steps of users on the pages."""

import re
import time
from datetime import timedelta
from typing import Any

import pyotp
from django.utils import timezone
from playwright.sync_api import APIResponse, expect

from accounts.models import Session, User
from tests.cast import Caller
from tests.console.browser import Visitor
from tests.twofactor.holder import Holder, with_totp

EMAIL = "dora@example.com"
PASSWORD = "seven quiet lakes"
SIGN_UP = {"password": PASSWORD, "organization": "Lakes & Sons"}


def post(visitor: Visitor, path: str, body: Any) -> APIResponse:
    """Send a request as a page would, with the browser's cookies."""
    headers = {"X-Zonal-Console": "1", "Sec-Fetch-Site": "same-origin"}
    return visitor.context.request.post(visitor.base + path, data=body, headers=headers)


def add_account(email: str = EMAIL) -> None:
    """Add an account by a sign-up elsewhere; nobody is signed in here."""
    answer = Caller().post("/v1/auth/signup", SIGN_UP | {"email": email})
    assert answer.status == 201, answer.body


def sign_up(visitor: Visitor, email: str = EMAIL) -> None:
    """Sign up as the page does, without loading it; the browser has the session, and no page."""
    answer = post(visitor, "/v1/auth/signup", SIGN_UP | {"email": email})
    assert answer.status == 201, answer.text()


def sign_up_on_the_page(visitor: Visitor) -> None:
    """Sign up on the page, and open the console."""
    visitor.go("/console/sign-up")
    visitor.fill("Organization optional", "Lakes & Sons")
    visitor.fill("E-mail", EMAIL)
    visitor.fill("Password", PASSWORD)
    visitor.press("Create")
    visitor.sees("Your organization was created")
    visitor.page.get_by_role("link", name="Open the console").click()
    visitor.is_at("/console/")


def with_app(email: str = EMAIL) -> Holder:
    """Set up an authenticator app elsewhere; return who holds it."""
    return with_totp(User.objects.get(email=email))


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

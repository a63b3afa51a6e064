"""In a browser: a webhook is added, tested, looked at, switched off and removed."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from outbox.models import WebhookDelivery, WebhookEndpoint
from outbox.webhooks import dispatch
from tests.console.browser import Visitor
from tests.console.journeys import sign_up
from tests.outbox.webhooks.receiver import receiving

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]
PATH = "/console/webhooks"


def test_a_webhook_is_added_tested_and_removed(
    visitor: Visitor, picture: Callable[[Page, str], None]
) -> None:
    sign_up(visitor)
    visitor.go(PATH)
    visitor.sees("No webhooks yet")
    with receiving() as receiver:
        url = receiver.url("/hook")
        visitor.press("Add the first webhook")
        visitor.fill("URL", url)
        visitor.page.locator("[value='member.added']").check()
        visitor.press("Save")
        visitor.sees("The secret is shown only now")
        secret = visitor.page.locator("#webhook-secret").text_content() or ""
        assert secret.startswith("whsec_")
        visitor.settle()
        visitor.press("Send a test event")
        visitor.sees("webhook.test")
        visitor.settle()
        visitor.press("I have saved it")
        assert secret not in visitor.page.content()
        dispatch.run()
        visitor.settle()
        visitor.press("Refresh")
        visitor.sees("status 200")
        picture(visitor.page, "webhooks")
        visitor.settle()
        visitor.page.get_by_role("button", name="Send again").click()
        visitor.sees_status("It is sent again.")
        dispatch.run()
        assert receiver.paths() == ["/hook", "/hook"]
    visitor.settle()
    visitor.press(f"Switch off: {url}")
    expect(visitor.page.get_by_role("alertdialog")).to_contain_text("are not sent")
    visitor.agrees("Switch off")
    visitor.sees("switched off by an admin")
    assert WebhookEndpoint.objects.get().state == "disabled"
    visitor.settle()
    visitor.press(f"Remove: {url}")
    visitor.agrees("Remove")
    visitor.sees("No webhooks yet")
    assert not WebhookDelivery.objects.exists()

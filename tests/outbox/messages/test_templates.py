"""Every template renders in both forms, escapes its values, and cannot forge a header."""

import re
from pathlib import Path

import pytest
from django.core import mail

from accounts import notices
from accounts.models import User
from outbox.messages import queue, templates
from outbox.messages.templates import NOTICES, TEMPLATES, Scalar, check, compose, single_line
from outbox.models import Delivery
from tests.outbox.messages.support import run

FOLDER = Path(__file__).resolve().parents[3] / "templates/mail"
HOSTILE = '<script>alert(1)</script>\r\nBcc: everyone@example.com\r\n\r\n\u202eevil & "quoted"'


def filled(name: str, *, value: str = "") -> dict[str, Scalar]:
    """Return a context with every field of a template."""
    fields = sorted(TEMPLATES[name].required | TEMPLATES[name].optional)
    return {
        field: "https://zonal.example.com/x?a=1&b=2"
        if field.endswith("link")
        else value or f"the-{field}"
        for field in fields
    }


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_shows_every_field_in_both_forms(name: str) -> None:
    context = filled(name)
    check(name, context)
    composed = compose(name, context)
    for value in context.values():
        escaped = str(value).replace("&", "&amp;")
        assert str(value) in composed.text
        assert escaped in composed.html


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_works_without_its_optional_fields(name: str) -> None:
    context = {field: filled(name)[field] for field in TEMPLATES[name].required}
    check(name, context)
    composed = compose(name, context)
    assert "None" not in composed.text + composed.html
    assert re.search(r"\n{4}", composed.text) is None


@pytest.mark.parametrize("name", TEMPLATES)
def test_hostile_values_are_escaped(name: str) -> None:
    composed = compose(name, filled(name, value=HOSTILE))
    assert "<script>" not in composed.html
    assert "\u202e" not in composed.subject + composed.text + composed.html
    assert "\nBcc:" not in composed.text
    assert composed.subject.isprintable()
    assert len(composed.subject) <= 150


@pytest.mark.parametrize("name", TEMPLATES)
def test_no_template_loads_external_content(name: str) -> None:
    html = compose(name, filled(name)).html
    assert not re.search(r"<(img|link|script|iframe|style)|url\(|@import|background=", html)
    assert 'name="color-scheme" content="light dark"' in html


def test_files_and_table_name_the_same_templates() -> None:
    bases = {"base", "notice"}
    for form in ("txt", "html"):
        assert {path.stem for path in FOLDER.rglob(f"*.{form}")} - bases == set(TEMPLATES)


@pytest.mark.parametrize(
    ("name", "context"),
    [
        ("unknown", {}),
        ("email_code", {"code": "1", "purpose": "x"}),
        ("email_code", {"code": "1", "purpose": "x", "minutes": 1, "colour": "red"}),
        ("email_code", {"code": "1", "purpose": ["x"], "minutes": 1}),
        ("invitation", {"organization": "x", "link": "javascript:alert(1)"}),
    ],
)
def test_a_context_that_does_not_fit_is_refused_at_the_caller(
    name: str, context: dict[str, Scalar]
) -> None:
    with pytest.raises(ValueError, match=r"template|fields|plain|link"):
        check(name, context)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a\r\nb", "a b"),
        ("a\u2028b", "a b"),
        ("a\0b", "a b"),
        ("a\ud800b", "a b"),
        ("\u202ea", "a"),
        (" é  b ", "é b"),
    ],
)
def test_a_value_is_one_line(text: str, line: str) -> None:
    assert single_line(text) == line


@pytest.mark.django_db
@pytest.mark.parametrize(
    "to", ["a@example.com\nBcc: b@example.com", "a@example.com, b@example.com", "a", ""]
)
def test_an_invalid_recipient_is_refused(to: str) -> None:
    with pytest.raises(ValueError, match="not an e-mail address"):
        queue.send_mail(
            to, "email_code", {"code": "1", "purpose": "x", "minutes": 1}, organization_id=None
        )
    assert not Delivery.objects.exists()


@pytest.mark.django_db
def test_the_name_of_an_organization_cannot_forge_a_header(alice: User) -> None:
    context = {"organization": HOSTILE, "link": "https://zonal.example.com/join"}
    delivery = queue.send_mail("bob@example.com", "invitation", context, organization_id=None)
    assert run(delivery).state == "sent"
    [sent] = mail.outbox
    message = sent.message()
    assert message["Bcc"] is None
    assert sent.recipients() == ["bob@example.com"]
    assert "\n" not in sent.subject


@pytest.mark.django_db
@pytest.mark.parametrize("notice", sorted(NOTICES))
def test_each_notice_is_mailed_to_the_user(alice: User, notice: templates.Notice) -> None:
    given = {"account", "at"}
    context = {k: v for k, v in filled(notice).items() if k not in given}
    delivery = notices.queue_notice(alice, notice, **context)  # type: ignore[arg-type]  # `to` is not among them
    assert (delivery.user_id, delivery.organization_id) == (alice.pk, alice.organization_id)
    assert run(delivery).state == "sent"
    [sent] = mail.outbox
    assert sent.to == ["alice@example.com"]
    assert "a***@example.com" in str(sent.body)


@pytest.mark.django_db
def test_a_notice_can_be_sent_to_the_old_address(alice: User) -> None:
    alice.email = "alice@new.example.com"
    run(notices.queue_notice(alice, "email_changed", to="alice@example.com"))
    [sent] = mail.outbox
    assert sent.to == ["alice@example.com"]
    # The holder of the former mailbox need not learn the new address.
    assert "alice@new.example.com" not in str(sent.body)
    assert "a***@new.example.com" in str(sent.body)


@pytest.mark.django_db
def test_a_code_is_refused_as_a_notice(alice: User) -> None:
    with pytest.raises(ValueError, match="not a notice"):
        notices.queue_notice(alice, "email_code", code="1")  # type: ignore[arg-type]  # on purpose

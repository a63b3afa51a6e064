"""ZMAIL_URL, ZMAIL_FROM and ZSMS_URL: what they mean, and how a wrong value is refused."""

from pathlib import Path

import pytest
from django.core import mail

from common.settings.env import Env, SettingError
from common.settings.table import load
from outbox.conf import TIMEOUT_S, Backend, MailSettings, sms_backend

SMTP = "outbox.messages.mail.EmailBackend"


def mail_backend(url: str) -> Backend:
    """Return the backend that ZMAIL_URL names."""
    return load(MailSettings, Env({"ZMAIL_URL": url})).backend


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("smtp://mail.example.com", ("mail.example.com", 587, "", "", True, False)),
        ("smtp://u%40x:p%3Aw@h:25?tls=starttls", ("h", 25, "u@x", "p:w", True, False)),
        ("smtp://relay:25?tls=none", ("relay", 25, "", "", False, False)),
        ("smtps://u:p@h", ("h", 465, "u", "p", False, True)),
        ("smtp://[::1]:2525", ("::1", 2525, "", "", True, False)),
    ],
)
def test_smtp_is_encrypted_by_default(url: str, expected: tuple[object, ...]) -> None:
    backend = mail_backend(url)
    names = ("host", "port", "username", "password", "use_tls", "use_ssl")
    assert backend.path == SMTP
    assert tuple(backend.options[name] for name in names) == expected
    assert backend.options["timeout"] == TIMEOUT_S
    mail.get_connection(backend.path, **backend.options)


def test_mail_is_printed_to_the_console_in_development() -> None:
    assert load(MailSettings, Env({})).backend.path == "outbox.messages.development.EmailBackend"


def test_mail_can_be_written_to_files() -> None:
    backend = mail_backend("file:///var/spool/my%20mail")
    assert backend.options == {"file_path": "/var/spool/my mail"}


def test_a_mail_service_reads_its_settings_from_the_url() -> None:
    url = "anymail:mailgun?api_key=key-1&sender_domain=mg.example.com"
    backend = mail_backend(url)
    connection = mail.get_connection(backend.path, **backend.options)
    assert type(connection).__module__ == "anymail.backends.mailgun"
    assert (connection.api_key, connection.timeout) == ("key-1", TIMEOUT_S)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://x",
        "smtp://",
        "smtp://h:port",
        "smtp://h:99999",
        "smtp://h?tls=maybe",
        "smtp://h?verify=no",
        "smtps://h?tls=none",
        "file://relative/path",
        "file:",
        "anymail:",
        "anymail:no_such_service",
        "anymail:../../x",
    ],
)
def test_a_wrong_mail_url_is_refused(url: str) -> None:
    with pytest.raises(SettingError, match="ZMAIL_URL"):
        mail_backend(url)


def test_the_error_message_does_not_show_the_password() -> None:
    with pytest.raises(SettingError) as refusal:
        mail_backend("smtp://zonal:hunter22@h?tls=maybe")
    assert "hunter22" not in str(refusal.value)


@pytest.mark.parametrize("sender", ["Zonal", "Zonal <>", "a@b\nBcc: c@d"])
def test_a_wrong_sender_is_refused(sender: str) -> None:
    with pytest.raises(SettingError, match="ZMAIL_FROM"):
        load(MailSettings, Env({"ZMAIL_FROM": sender}))


def sms(url: str, *, is_production: bool = True) -> Backend:
    """Return the backend that ZSMS_URL names."""
    return sms_backend(Env({"ZSMS_URL": url}), is_production=is_production)


def test_production_has_no_sms_backend_by_default() -> None:
    assert sms("").path == ""
    assert sms("", is_production=False).path == "outbox.messages.sms.console.send"
    assert sms("none:", is_production=False).path == ""


def test_sms_files_have_a_folder() -> None:
    assert sms("file:///else%20where").options == {"folder": Path("/else where")}


def test_twilio_accepts_an_auth_token_or_an_api_key() -> None:
    options = sms("twilio://AC1:tok%2Fen@api.twilio.com/AC1?from=%2B15005550006").options
    assert (options["username"], options["password"]) == ("AC1", "tok/en")
    assert (options["base_url"], options["sender"]) == ("https://api.twilio.com", "+15005550006")
    options = sms("twilio://SK1:key@api.dublin.ie1.twilio.com/AC1?from=MG7").options
    assert (options["account"], options["username"], options["password"]) == ("AC1", "SK1", "key")
    assert options["base_url"] == "https://api.dublin.ie1.twilio.com"


@pytest.mark.parametrize(
    "url",
    [
        "twilio://AC1@api.twilio.com/AC1?from=Zonal",
        "twilio://AC1:hunter22@api.twilio.com?from=Zonal",
        "twilio://AC1:hunter22@api.twilio.com/AC1",
        "twilio://AC1:hunter22@/AC1?from=Zonal",
        "twilio://AC1:hunter22@api.twilio.com/AC1?from=Zonal&region=ie1",
        "twilio://AC1:hunter22@api.twilio.com:x/AC1?from=Zonal",
        "file://relative/path",
        "console:hunter22",
        "twilio",
    ],
)
def test_a_wrong_sms_url_is_refused_at_start_without_its_secret(url: str) -> None:
    with pytest.raises(SettingError, match="ZSMS_URL") as refusal:
        sms(url)
    assert "hunter22" not in str(refusal.value)

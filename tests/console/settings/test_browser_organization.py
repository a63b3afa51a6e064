"""In a browser: the organization's page, and drafts of forms."""

import re
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from pytest_django import Settings

from accounts.models import Session, User
from environments.models import Organization
from organizations import tasks
from organizations.models import OrganizationExport
from tests.console.browser import Visitor
from tests.console.journeys import EMAIL, PASSWORD, sign_up
from tests.console.layout import hold

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]


def test_an_admin_renames_the_organization_and_sees_it_immediately(visitor: Visitor) -> None:
    sign_up(visitor)
    visitor.go("/console/organization")
    expect(visitor.field("Name")).to_have_value("Lakes & Sons")
    visitor.fill("Name", " ")
    visitor.press("Rename")
    expect(visitor.field("Name")).to_have_attribute("aria-invalid", "true")
    visitor.fill("Name", "Rivers & Daughters")
    visitor.press("Rename")
    visitor.sees_status("The organization is renamed.")
    expect(visitor.page.locator(".bar .organization")).to_have_text("Rivers & Daughters")
    assert Organization.objects.get().name == "Rivers & Daughters"
    User.objects.update(roles=["reader"])
    visitor.go("/console/organization")
    visitor.sees("Only admins can rename the organization.")


def test_an_admin_has_it_deleted_and_keeps_it_after_all(
    visit: Callable[..., Visitor], picture: Callable[[Page, str], None]
) -> None:
    for name, width in (("organization", 1440), ("organization-narrow", 390)):
        visitor = visit(viewport={"width": width, "height": 900})
        sign_up(visitor, f"{name}@example.com")
        visitor.go("/console/organization")
        visitor.fill("Type the organization's name", "Lakes")
        visitor.press("Delete the organization")
        visitor.agrees("Delete")
        visitor.sees("This is not the organization's name.")
        visitor.fill("Type the organization's name", "Lakes & Sons")
        visitor.press("Delete the organization")
        visitor.agrees("Delete")
        visitor.sees("This organization is going to be deleted")
        hold(visitor, name)
        picture(visitor.page, name)
        visitor.go("/console/")
        visitor.sees("This organization will be deleted permanently on")
        visitor.go("/console/organization")
        visitor.press("Keep the organization")
        visitor.sees_status("The organization is kept.")
        expect(visitor.page.locator("#deletion-due")).to_be_hidden()
    assert not Organization.objects.exclude(deletion_due_at=None).exists()


def test_an_admin_exports_everything_and_downloads_it(
    visitor: Visitor, settings: Settings, tmp_path: Path
) -> None:
    settings.CACHE = replace(settings.CACHE, is_enabled=False)
    settings.ORGANIZATIONS = replace(settings.ORGANIZATIONS, export_dir=str(tmp_path))
    sign_up(visitor)
    visitor.go("/console/organization")
    visitor.press("Export databases and records")
    visitor.sees("queued")
    expect(visitor.page.get_by_role("button", name="Export databases and records")).to_be_disabled()
    tasks.write_export(str(OrganizationExport.objects.get().pk))
    # The page looks again by itself.
    visitor.sees("ready")
    hold(visitor, "exports")
    with visitor.page.expect_download() as saved:
        visitor.page.get_by_role("button", name=re.compile("Download the export")).click()
    with zipfile.ZipFile(saved.value.path()) as archive:
        assert "members.ndjson" in archive.namelist()
    visitor.page.get_by_role("button", name=re.compile("Delete the export")).click()
    visitor.agrees("Delete")
    visitor.sees("There is none.")
    assert not list(tmp_path.glob("*.zip"))


def test_a_draft_survives_a_reload_and_the_end_of_the_session(visitor: Visitor) -> None:
    sign_up(visitor)
    visitor.go("/console/operator")
    visitor.page.get_by_text("Register a node").click()
    visitor.fill("Region", "eu-central")
    visitor.page.reload()
    visitor.settle()
    region = visitor.page.get_by_label("Region")
    expect(region).to_have_value("eu-central")
    Session.objects.all().delete()
    visitor.page.reload()
    visitor.fill("E-mail", EMAIL)
    visitor.fill("Password", PASSWORD)
    visitor.press("Sign in")
    visitor.is_at("/console/operator")
    expect(region).to_have_value("eu-central")
    visitor.press("Sign out")
    visitor.fill("E-mail", EMAIL)
    visitor.fill("Password", PASSWORD)
    visitor.press("Sign in")
    visitor.is_at("/console/")
    visitor.go("/console/operator")
    expect(region).to_have_value("")

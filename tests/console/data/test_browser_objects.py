"""In a browser: buckets, folders, uploads, previews and links, over a real brain with workers."""

import re
import urllib.request
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Dialog, Page, Route, expect
from pytest_django import Settings

from accounts.models import User
from audit.models import AuditEvent
from tests.console.browser import Visitor, held
from tests.console.journeys import EMAIL, PASSWORD, age_proofs, post, sign_up
from tests.console.layout import ON_BOTH_SIZES, hold, hold_panel

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("over_a_brain"),
]
MIB = 2**20
NARROW = {"viewport": {"width": 390, "height": 844}}
SVG = b"<svg xmlns='http://www.w3.org/2000/svg'><script>document.title='owned'</script></svg>"


def png() -> bytes:
    """Return a picture of 40 × 30 pixels."""
    rows = b"".join(b"\0" + bytes((15, 107, 99)) * 40 for _ in range(30))

    def chunk(kind: bytes, data: bytes) -> bytes:
        size, check = len(data).to_bytes(4, "big"), zlib.crc32(kind + data).to_bytes(4, "big")
        return size + kind + data + check

    head = (40).to_bytes(4, "big") + (30).to_bytes(4, "big") + b"\x08\x02\0\0\0"
    body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def upload(visitor: Visitor, *files: tuple[str, str, bytes]) -> None:
    """Upload files: name, type and bytes."""
    given: list[Any] = [
        {"name": name, "mimeType": kind, "buffer": body} for name, kind, body in files
    ]
    visitor.page.locator("#upload-files").set_input_files(given)


def add_bucket(visitor: Visitor, name: str = "media") -> None:
    """Create a bucket, as another page would."""
    assert post(visitor, "/v1/cache/buckets", {"name": name}).ok


def new_bucket(visitor: Visitor, name: str = "media") -> None:
    """Create a bucket, and open it."""
    add_bucket(visitor, name)
    visitor.go(f"/console/objects?bucket={name}")
    visitor.sees("This bucket is empty")


def open_object(visitor: Visitor, name: str) -> None:
    """Open an object's drawer, and wait until it is filled."""
    visitor.page.get_by_role("button", name=name, exact=True).click()
    expect(visitor.page.locator("#object-facts")).to_contain_text("ETag")
    expect(visitor.page.locator("#preview")).not_to_contain_text("Loading")


@ON_BOTH_SIZES
def test_files_are_uploaded_browsed_shared_and_deleted(
    visitor: Visitor, picture: Callable[[Page, str], None]
) -> None:
    sign_up(visitor)
    new_bucket(visitor)
    upload(
        visitor,
        ("logo.png", "image/png", png()),
        ("notes.txt", "text/plain", "Wörter\n".encode()),
    )
    visitor.sees_status("2 files uploaded")
    visitor.press("New folder")
    visitor.fill("Name", "reports/2026")
    visitor.press("Open")
    upload(visitor, ("a.csv", "text/csv", b"a,b\n1,2\n"))
    visitor.sees_status("1 file uploaded")
    expect(visitor.page.get_by_role("button", name="a.csv")).to_be_visible()
    visitor.page.get_by_role("link", name="media", exact=True).click()
    expect(visitor.page.get_by_role("link", name="reports/", exact=True)).to_be_visible()
    picture(visitor.page, "objects")
    open_object(visitor, "logo.png")
    expect(visitor.page.get_by_role("img", name="40 × 30 pixels")).to_be_visible()
    visitor.page.get_by_label("Expires after").select_option("3600")
    visitor.press("Create link")
    link = visitor.page.get_by_label("Link", exact=True)
    expect(link).to_have_value(re.compile("X-Amz-Expires=3600"))
    expect(visitor.page.locator("#share")).to_contain_text(re.compile("Works until .* (UTC|GMT)"))
    facts = visitor.page.locator("#object-facts")
    expect(facts).to_contain_text(re.compile("Changed.* (UTC|GMT)"))
    picture(visitor.page, "objects-details")
    with urllib.request.urlopen(link.input_value(), timeout=10) as answer:  # noqa: S310 - loopback
        assert answer.read() == png()
    visitor.page.get_by_label("Expires after").select_option("2592000")
    visitor.press("Create link")
    expect(link).to_have_value(re.compile("/logo.png.zonal-expires="))
    with urllib.request.urlopen(link.input_value(), timeout=10) as answer:  # noqa: S310 - loopback
        assert answer.read() == png()
    visitor.press("Close")
    open_object(visitor, "notes.txt")
    expect(visitor.page.locator("#preview pre")).to_have_text("Wörter\n")
    with visitor.page.expect_download() as saved:
        visitor.press("Download")
    assert saved.value.suggested_filename == "notes.txt"
    assert Path(saved.value.path()).read_text() == "Wörter\n"
    visitor.press("Close")
    visitor.page.get_by_label("Select all").check()
    visitor.press("Delete")
    # The bucket has no origin at which more would be deleted.
    visitor.sees("3 objects, 8 B in folders. This cannot be undone.")
    visitor.agrees("Delete")
    visitor.sees("This bucket is empty")
    tags = set(AuditEvent.objects.values_list("tag", flat=True))
    assert {"api:object:share", "api:object:upload", "api:object:delete"} <= tags


DRAG = """([types, ...names]) => {
  const carried = new DataTransfer();
  const type = "text/plain";
  for (const name of names) carried.items.add(new File([`of ${name}`], name, { type }));
  for (const each of types.split(" ")) {
    const event = new DragEvent(each, { dataTransfer: carried, bubbles: true, cancelable: true });
    document.querySelector("#file-table").dispatchEvent(event);
  }
}"""
DROP = "dragenter dragover drop"


def test_files_are_dropped_into_a_folder(
    visitor: Visitor, picture: Callable[[Page, str], None]
) -> None:
    sign_up(visitor)
    add_bucket(visitor)
    visitor.go("/console/objects?bucket=media&prefix=2026/")
    visitor.page.evaluate(DRAG, ["dragenter dragover", "a.txt"])
    expect(visitor.page.locator("#drop.dragged")).to_contain_text("Drop to upload into media/2026/")
    picture(visitor.page, "objects-drop")
    visitor.page.evaluate(DRAG, ["dragleave", "a.txt"])
    expect(visitor.page.locator("#drop.dragged")).to_have_count(0)
    visitor.page.evaluate(DRAG, [DROP, "a.txt", "b c.txt"])
    visitor.sees_status("2 files uploaded")
    expect(visitor.page.locator("#drop.dragged")).to_have_count(0)
    open_object(visitor, "b c.txt")
    expect(visitor.page.locator("#preview pre")).to_have_text("of b c.txt")
    visitor.press("Close")
    User.objects.update(roles=["reader"])
    visitor.go("/console/objects?bucket=media&prefix=2026/")
    visitor.page.evaluate(DRAG, [DROP, "c.txt"])
    expect(visitor.page.get_by_role("button", name="a.txt")).to_be_visible()
    assert visitor.page.locator("#upload-list > li").count() == 0


@ON_BOTH_SIZES
def test_an_upload_replaces_nothing_without_an_answer(
    visitor: Visitor, tmp_path: Path, picture: Callable[[Page, str], None]
) -> None:
    sign_up(visitor)
    new_bucket(visitor)
    page, question = visitor.page, visitor.page.get_by_role("alertdialog")
    names = [f"{letter}.txt" for letter in "abcd"]
    upload(visitor, *((name, "text/plain", b"first") for name in names[:3]))
    visitor.sees_status("3 files uploaded")
    film = tmp_path / "film.bin"
    film.write_bytes(b"1" * (17 * MIB))
    page.locator("#upload-files").set_input_files(film)
    visitor.sees_status("1 file uploaded")
    # What the page does not show is there all the same.
    page.locator("#filter").fill("none")
    visitor.sees("No name begins with that")

    upload(visitor, ("a.txt", "text/plain", b"second!"), ("d.txt", "text/plain", b"second!"))
    expect(question).to_contain_text("Replace a.txt?")
    sizes = [re.compile("^5 B, changed "), re.compile("^7 B, changed ")]
    expect(question.locator("dd")).to_have_text(sizes)
    picture(page, "objects-replace")
    question.get_by_role("button", name="Skip").click()
    visitor.sees_status("1 file uploaded, 1 skipped")
    upload(visitor, *((name, "text/plain", b"second!") for name in ("b.txt", "c.txt", "e.txt")))
    question.get_by_label("The same for all other files").check()
    question.get_by_role("button", name="Replace").click()
    visitor.sees_status("3 files uploaded")

    # A large file is not sent before the answer. Without an answer nothing is replaced.
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url))
    film.write_bytes(b"2" * (17 * MIB + 1))
    page.locator("#upload-files").set_input_files(film)
    expect(question).to_contain_text("Replace film.bin?")
    assert not [url for url in sent if "partNumber" in url]
    page.keyboard.press("Escape")
    visitor.sees_status("0 files uploaded, 1 skipped")
    expect(page.locator("#upload-list")).to_contain_text("not uploaded: what is there stays")
    page.locator("#upload-files").set_input_files(film)
    question.get_by_role("button", name="Replace").click()
    visitor.sees_status("1 file uploaded")

    page.locator("#filter").fill("")
    for name, content in zip(names, ("first", "second!", "second!", "second!"), strict=True):
        open_object(visitor, name)
        expect(page.locator("#preview pre")).to_have_text(content)
        visitor.press("Close")
    open_object(visitor, "film.bin")
    visitor.sees("17,825,793 bytes")


@ON_BOTH_SIZES
def test_files_that_would_become_one_object_are_named_before_the_upload(visitor: Visitor) -> None:
    sign_up(visitor)
    new_bucket(visitor)
    page, question = visitor.page, visitor.page.get_by_role("alertdialog")
    page.evaluate(DRAG, [DROP, "d.txt", "d.txt"])
    visitor.sees("Several files would become the same object: d.txt. Nothing is uploaded.")
    page.evaluate(DRAG, [DROP, "d.txt", "e.txt", "d.txt"])
    expect(question.locator("pre")).to_have_text("d.txt")
    visitor.agrees("Cancel")
    page.evaluate(DRAG, [DROP, "d.txt", "e.txt", "d.txt"])
    visitor.agrees("Upload the other 1 file")
    visitor.sees_status("1 file uploaded")
    expect(page.get_by_role("button", name="e.txt")).to_be_visible()
    expect(page.get_by_role("button", name="d.txt")).to_have_count(0)


def test_an_origin_without_conditions_is_asked_whether_the_object_is_there(
    visitor: Visitor,
) -> None:
    sign_up(visitor)
    new_bucket(visitor)
    page, written = visitor.page, re.compile(r"/media/[a-z]+\.txt\?")

    def refuse_conditions(route: Route) -> None:
        if route.request.method == "PUT" and "if-none-match" in route.request.headers:
            route.fulfill(
                status=501,
                headers={"Access-Control-Allow-Origin": visitor.base},
                body="<Error><Code>NotImplemented</Code><Message>No conditions.</Message></Error>",
            )
        else:
            route.continue_()

    page.route(written, refuse_conditions)
    upload(visitor, ("a.txt", "text/plain", b"first"))
    visitor.sees_status("1 file uploaded")
    upload(visitor, ("a.txt", "text/plain", b"second"))
    question = page.get_by_role("alertdialog")
    expect(question).to_contain_text("Replace a.txt?")
    question.get_by_role("button", name="Skip").click()
    visitor.sees_status("0 files uploaded, 1 skipped")
    open_object(visitor, "a.txt")
    expect(page.locator("#preview pre")).to_have_text("first")
    # The browser logs the refusals.
    visitor.faults[:] = [each for each in visitor.faults if "status of 501" not in each]


LISTS = re.compile(r"/v1/cache/buckets/media/objects\?")


def test_the_list_stays_as_it_is_while_files_are_uploaded_and_deleted(
    visitor: Visitor, tmp_path: Path
) -> None:
    sign_up(visitor)
    new_bucket(visitor)
    page, lists = visitor.page, list[str]()
    upload(visitor, *((f"{letter}.txt", "text/plain", b"x") for letter in "abcdef"))
    visitor.sees_status("6 files uploaded")
    # Small pages.
    page.route(LISTS, lambda route: route.continue_(url=route.request.url.replace("=200", "=2")))
    page.on("request", lambda request: lists.extend(LISTS.findall(request.url)))
    visitor.go("/console/objects?bucket=media")
    visitor.press("Show more")
    expect(page.get_by_role("button", name="d.txt")).to_be_visible()
    page.get_by_label("Select b.txt").check()
    assert len(lists) == 2

    folder = tmp_path / "albums"
    (folder / "deep").mkdir(parents=True)
    for path in ("one.txt", "deep/two.txt"):
        (folder / path).write_text("in a folder")
    page.locator("#upload-folder").set_input_files(folder)
    visitor.sees_status("2 files uploaded")
    upload(visitor, *((f"{name}.txt", "text/plain", b"new") for name in ("cc", "e2", "e3")))
    visitor.sees_status("3 files uploaded")
    upload(visitor, ("b.txt", "text/plain", b"replaced"))
    page.get_by_role("alertdialog").get_by_role("button", name="Replace").click()
    visitor.sees_status("1 file uploaded")
    # The others belong to a page that is not shown yet.
    shown = ["albums/", "a.txt", "b.txt", "c.txt", "cc.txt", "d.txt"]
    expect(page.locator("#file-rows .name")).to_have_text(shown)
    expect(page.get_by_role("row", name="b.txt")).to_contain_text("8 B")
    expect(page.get_by_label("Select b.txt")).to_be_checked()

    # A range of boxes, and the focus after what is removed.
    page.get_by_label("Select cc.txt").click(modifiers=["Shift"])
    expect(page.locator("#selection")).to_contain_text("3 items selected")
    visitor.press("Delete")
    visitor.agrees("Delete")
    expect(page.get_by_role("button", name="d.txt")).to_be_focused()
    open_object(visitor, "a.txt")
    page.locator("#details").get_by_role("button", name="Delete").click()
    visitor.agrees("Delete")
    expect(page.get_by_role("button", name="d.txt")).to_be_focused()
    assert len(lists) == 2
    visitor.press("Show more")
    expect(page.get_by_role("button", name="e2.txt")).to_be_visible()
    page.get_by_role("link", name="albums/").click()
    page.get_by_role("link", name="deep/").click()
    expect(page.get_by_role("button", name="two.txt")).to_be_visible()
    expect(page.get_by_role("heading", name="Objects of media/albums/deep/")).to_be_focused()


def test_a_large_file_goes_in_parts_and_a_lost_part_is_repeated(
    visitor: Visitor, tmp_path: Path
) -> None:
    sign_up(visitor)
    new_bucket(visitor)
    lost: list[str] = []

    def lose_one(route: Route) -> None:
        if "partNumber=2" in route.request.url and not lost:
            lost.append(route.request.url)
            route.abort("connectionreset")
        else:
            route.continue_()

    visitor.page.route(re.compile("partNumber="), lose_one)
    film = tmp_path / "film.bin"
    film.write_bytes(b"z" * (17 * MIB))
    visitor.page.locator("#upload-files").set_input_files(film)
    expect(visitor.page.locator("#upload-list")).to_contain_text("done, 17.8 MB")
    assert lost
    open_object(visitor, "film.bin")
    visitor.sees("17,825,792 bytes")
    visitor.sees("application/octet-stream")
    visitor.sees("No preview for this type.")
    # The browser logs the lost connection.
    visitor.faults[:] = [each for each in visitor.faults if "ERR_CONNECTION_RESET" not in each]


def hold_writes(visitor: Visitor, *, but: str = "never") -> None:
    """Let the requests that write objects wait, but those to one."""

    def take(route: Route) -> None:
        if route.request.method != "PUT" or but in route.request.url:
            route.continue_()

    visitor.page.route(re.compile("x-zonal-origin"), take)


@ON_BOTH_SIZES
def test_uploads_have_a_total_and_are_cancelled_and_retried(
    visitor: Visitor, picture: Callable[[Page, str], None]
) -> None:
    sign_up(visitor)
    new_bucket(visitor)
    page, panel = visitor.page, visitor.page.locator("#uploads")
    hold_writes(visitor, but="/a.bin")
    upload(visitor, *((f"{letter}.bin", "", b"z" * 1000) for letter in "abcd"))
    rows = panel.locator("#upload-list > li")
    # What runs stands above what has ended.
    expect(rows.last).to_contain_text("done, 1 kB")
    expect(rows.first).to_contain_text("b.bin")
    expect(rows.locator("progress:visible")).to_have_count(2)
    expect(panel).to_contain_text(re.compile("1 of 4 files, .* of 4 kB"))
    hold_panel(visitor, "uploads")
    picture(page, "objects-uploads")
    visitor.press("Cancel b.bin")
    expect(page.get_by_role("button", name="Cancel c.bin")).to_be_focused()
    visitor.press("Cancel all")
    visitor.sees_status("1 file uploaded, 3 cancelled")
    expect(page.get_by_role("heading", name="1 file uploaded")).to_be_focused()
    page.unroute_all(behavior="ignoreErrors")
    visitor.press("Retry b.bin")
    visitor.sees_status("2 files uploaded, 2 cancelled")
    expect(page.locator("#file-rows")).to_contain_text("b.bin")
    panel.get_by_role("button", name="Clear").click()
    expect(panel).to_be_hidden()


def test_during_an_upload_to_leave_and_to_switch_asks_and_a_download_does_not(
    visitor: Visitor,
) -> None:
    sign_up(visitor)
    new_bucket(visitor)
    upload(visitor, ("notes.txt", "text/plain", b"words"))
    visitor.sees_status("1 file uploaded")
    asked: list[str] = []

    def note(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.dismiss()

    visitor.page.on("dialog", note)
    hold_writes(visitor)
    upload(visitor, ("film.bin", "video/mp4", b"z" * MIB))
    expect(visitor.page.locator("#upload-list progress:visible")).to_have_count(1)
    open_object(visitor, "notes.txt")
    with visitor.page.expect_download() as saved:
        visitor.press("Download")
    assert Path(saved.value.path()).read_text() == "words"
    assert asked == []
    visitor.press("Close")
    expect(visitor.page.locator("#upload-list progress:visible")).to_have_count(1)
    # Its other parts would go to the environment that is switched to.
    visitor.page.locator("#environment-menu summary").click()
    visitor.press("sandbox")
    visitor.agrees("Cancel")
    with visitor.page.expect_event("dialog"):
        visitor.page.evaluate("location.assign('/console/')")
    expect(visitor.page.locator("#environment-menu summary")).to_contain_text("live")
    expect(visitor.page.locator("#upload-list progress:visible")).to_have_count(1)
    assert asked == ["beforeunload"]
    visitor.press("Cancel film.bin")
    visitor.page.unroute_all(behavior="ignoreErrors")


@ON_BOTH_SIZES
def test_the_address_names_the_place_and_a_link_to_what_is_gone_says_so(
    visitor: Visitor, picture: Callable[[Page, str], None]
) -> None:
    sign_up(visitor)
    new_bucket(visitor)
    picture(visitor.page, "objects-first-upload")
    page = visitor.page
    visitor.go("/console/objects?bucket=media&prefix=2026/")
    upload(visitor, *((name, "text/plain", b"words") for name in ("notes.txt", "plan.txt")))
    visitor.sees_status("2 files uploaded")
    page.locator("#filter").fill("no")
    expect(page.get_by_role("button", name="plan.txt")).to_have_count(0)
    page.reload()
    expect(page.get_by_role("button", name="notes.txt")).to_be_visible()
    expect(page.get_by_role("button", name="plan.txt")).to_have_count(0)
    page.get_by_role("link", name="media", exact=True).click()
    expect(page.get_by_role("link", name="2026/")).to_be_visible()
    page.go_back()
    expect(page.locator("#filter")).to_have_value("no")
    expect(page.get_by_role("button", name="notes.txt")).to_be_visible()
    open_object(visitor, "notes.txt")
    address = page.url
    visitor.press("Close")
    page.goto(address)
    drawer = page.get_by_role("dialog", name="notes.txt")
    expect(drawer).to_contain_text("media/2026/notes.txt")
    drawer.get_by_role("button", name="Delete").click()
    visitor.agrees("Delete")
    expect(drawer).to_have_count(0)

    page.goto(address)
    expect(drawer).to_contain_text("There is no object media/2026/notes.txt.")
    expect(drawer.get_by_role("button")).to_have_count(1)
    visitor.press("Close")
    visitor.go("/console/objects?bucket=elsewhere&prefix=2026/")
    expect(page.get_by_role("heading", name="There is no bucket elsewhere")).to_be_visible()
    for name in ("Upload", "Purge", "New folder"):
        expect(page.get_by_role("button", name=name, exact=True)).to_have_count(0)
    hold(visitor, "gone")
    picture(page, "objects-gone")
    visitor.go("/console/objects?bucket=elsewhere&view=settings")
    expect(page.get_by_role("heading", name="There is no bucket elsewhere")).to_be_visible()
    expect(page.get_by_role("button", name="Delete bucket")).to_have_count(0)
    page.get_by_role("link", name="All buckets").click()
    expect(page.get_by_role("link", name="media")).to_be_visible()


def test_what_others_stored_runs_nowhere(visitor: Visitor) -> None:
    sign_up(visitor)
    new_bucket(visitor)
    name = "<img src=x onerror=document.title='owned'>.svg"
    upload(
        visitor,
        (name, "image/svg+xml", SVG),
        ("page.html", "text/html", b"<script>document.title='owned'</script>"),
        ("fake.png", "image/png", SVG),
    )
    visitor.sees_status("3 files uploaded")
    for each, said in (
        (name, "No preview for this type."),
        ("page.html", "No preview for this type."),
        ("fake.png", "The preview could not be loaded."),
    ):
        open_object(visitor, each)
        expect(visitor.page.locator("#preview")).to_have_text(said)
        visitor.press("Close")
    # Opened as a page of its own it has no scripts, and no access to what the object API stores.
    open_object(visitor, "page.html")
    visitor.press("Create link")
    link = visitor.page.get_by_label("Link", exact=True)
    expect(link).to_have_value(re.compile("attachment"))
    assert "owned" not in visitor.page.title()


def test_a_bucket_is_configured_and_deleted(
    visitor: Visitor, picture: Callable[[Page, str], None]
) -> None:
    sign_up(visitor)
    visitor.go("/console/objects?view=origins")
    visitor.press("New origin")
    visitor.fill("Name", "site")
    visitor.page.get_by_label("URL").fill("https://origin.example.com/")
    age_proofs()
    visitor.press("Create")
    visitor.page.get_by_role("dialog").get_by_label("Password", exact=True).fill(PASSWORD)
    visitor.press("Confirm")
    visitor.sees("http: https://origin.example.com/, without credentials")
    visitor.press("Change the options of site")
    dialog = visitor.page.get_by_role("dialog", name="Options of site")
    expect(dialog.get_by_label("First byte timeout")).to_have_value("30")
    dialog.get_by_label("Idle timeout").fill("4000")
    visitor.press("Save")
    visitor.sees("3600")
    dialog.get_by_label("Idle timeout").fill("0")
    dialog.get_by_label("Host optional").fill("www.example.com")
    visitor.press("Save")
    visitor.sees("The options of site are saved.")
    visitor.press("Replace the credentials of site")
    visitor.fill("Authorization header optional", "two\nlines\x7f")
    visitor.press("Replace")
    visitor.sees("does not look like one.")
    visitor.fill("Authorization header optional", "Bearer secret")
    picture(visitor.page, "objects-origin-credentials")
    visitor.press("Replace")
    visitor.sees("http: https://origin.example.com/, with credentials")
    visitor.press("Replace the credentials of site")
    visitor.press("Replace")
    visitor.agrees("Remove credentials")
    visitor.sees("http: https://origin.example.com/, without credentials")
    visitor.page.get_by_role("link", name="Buckets").click()
    visitor.press("New bucket")
    visitor.fill("Name", "pulled")
    visitor.page.get_by_label("Objects from").select_option("site")
    visitor.press("Create")
    visitor.sees("The bucket's origin cannot list its objects.")
    expect(visitor.page.get_by_role("button", name=re.compile("Upload|New folder"))).to_have_count(
        0
    )
    visitor.page.get_by_role("link", name="Settings").click()
    expect(visitor.page.locator("#failure-list")).to_have_text("There are none.")
    form = visitor.page.locator("#switches")
    form.get_by_label("Public – anyone").check()
    form.get_by_label("Forward writes").check()
    form.get_by_label("Access log").fill("pulled")
    visitor.press("Save")
    visitor.agrees("Make public")
    visitor.sees("a bucket cannot keep its own access log")
    form.get_by_label("Access log").fill("")
    visitor.press("Save")
    visitor.agrees("Make public")
    visitor.sees_status("The settings are saved.")
    word, meaning = "first-byte-timeout", "The origin did not begin to answer in time."
    at = "2026-11-29T10:00:00Z"
    failure = {"cause": word, "meaning": meaning, "count": 3, "last_at": at}
    visitor.page.route("**/failures", lambda route: route.fulfill(json={"results": [failure]}))
    visitor.page.reload()
    failures = visitor.page.locator("#failures")
    expect(failures.get_by_role("listitem")).to_contain_text(meaning)
    expect(failures).to_contain_text(f"{word} · 3 responses, the last one Nov 29, 2026")
    expect(failures.get_by_role("link")).to_have_attribute("href", re.compile("^/v1/docs#"))
    picture(visitor.page, "objects-settings")
    visitor.press("Delete bucket")
    visitor.agrees("Delete")
    visitor.sees("No bucket yet")


def test_a_press_while_the_list_loads_waits_for_it_and_is_done_once(visitor: Visitor) -> None:
    sign_up(visitor)
    visitor.go("/console/objects?view=keys")
    with held(visitor, r"/v1/cache/buckets$"):
        visitor.page.get_by_role("link", name="Buckets").click()
        expect(visitor.page.locator("#buckets[data-busy]")).to_have_count(1)
        visitor.press("New bucket")
        visitor.press("New bucket")
    visitor.fill("Name", "media")
    visitor.press("Create")
    visitor.sees("This bucket is empty")


def test_what_is_typed_survives_a_reload_but_credentials(visitor: Visitor) -> None:
    sign_up(visitor)
    page = visitor.page
    visitor.go("/console/objects?view=origins")
    visitor.press("New origin")
    visitor.fill("Name", "images")
    visitor.page.get_by_label("Kind").select_option("s3")
    visitor.fill("Bucket", "pictures")
    for label in ("Access key id optional", "Secret access key optional"):
        visitor.fill(label, "AKIA-never-kept")
    visitor.go("/console/objects?view=origins")
    assert "never-kept" not in page.evaluate("JSON.stringify([sessionStorage, localStorage])")
    visitor.press("New origin")
    expect(visitor.field("Name")).to_have_value("images")
    expect(visitor.field("Bucket")).to_have_value("pictures")
    expect(visitor.field("Secret access key optional")).to_have_value("")

    new_bucket(visitor)
    visitor.press("New folder")
    visitor.fill("Name", "2026")
    visitor.go("/console/objects?bucket=media")
    visitor.press("New folder")
    expect(visitor.field("Name")).to_have_value("2026")
    visitor.go("/console/objects?bucket=media&view=settings")
    visitor.fill("Add a host name", "files.example.com")
    visitor.go("/console/objects?bucket=media&view=settings")
    expect(visitor.field("Add a host name")).to_have_value("files.example.com")
    add_bucket(visitor, "other")
    visitor.go("/console/objects?bucket=other&view=settings")
    expect(visitor.field("Add a host name")).to_have_value("")


def test_an_access_key_s_secret_is_shown_once(visitor: Visitor) -> None:
    sign_up(visitor)
    visitor.go("/console/objects?view=keys")
    visitor.press("New access key")
    visitor.press("Create")
    secret = visitor.page.locator('#key-made [data-slot="secret"]')
    expect(secret).to_have_text(re.compile(".{30,}"))
    shown = secret.text_content() or ""
    visitor.press("I have saved it")
    assert shown not in visitor.page.content()
    visitor.sees(f"reads and writes, by {EMAIL}, never used")


def test_readers_browse_and_change_nothing(visitor: Visitor) -> None:
    sign_up(visitor)
    new_bucket(visitor)
    upload(visitor, ("notes.txt", "text/plain", b"words"))
    visitor.sees_status("1 file uploaded")
    User.objects.update(roles=["reader"])
    visitor.go("/console/objects")
    visitor.page.get_by_role("link", name="media").click()
    open_object(visitor, "notes.txt")
    expect(visitor.page.locator("#preview pre")).to_have_text("words")
    for name in ("Delete", "Purge", "Upload", "New folder", "Select all"):
        expect(visitor.page.get_by_role("button", name=name, exact=True)).to_have_count(0)


def test_a_purge_shows_first_what_it_takes(visitor: Visitor) -> None:
    sign_up(visitor)
    new_bucket(visitor)
    upload(visitor, ("notes.txt", "text/plain", b"words"))
    visitor.sees_status("1 file uploaded")
    visitor.press("Purge")
    visitor.sees("This takes 1 object")
    visitor.agrees("Purge")
    visitor.sees_status("1 object purged")
    # The origin keeps it.
    open_object(visitor, "notes.txt")
    expect(visitor.page.locator("#preview pre")).to_have_text("words")


def test_a_bucket_is_purged_by_tag_and_its_links_are_revoked(
    visitor: Visitor, picture: Callable[[Page, str], None]
) -> None:
    sign_up(visitor)
    add_bucket(visitor)
    visitor.go("/console/objects?bucket=media&view=settings")
    visitor.fill("Tags", "colour=blue, page-1")
    picture(visitor.page, "objects-settings-tags")
    visitor.page.locator("#tag-purge").get_by_role("button", name="Purge").click()
    expect(visitor.page.get_by_role("alertdialog")).to_contain_text(
        "Purge what has colour=blue or page-1?"
    )
    visitor.agrees("Purge")
    visitor.sees_status("0 objects purged")
    visitor.press("Revoke all links")
    visitor.agrees("Revoke")
    visitor.sees_status("All signed links are revoked.")
    tags = set(AuditEvent.objects.values_list("tag", flat=True))
    assert {"api:cache:purge", "api:signed_link:delete"} <= tags


def test_an_unavailable_cache_is_reported(visitor: Visitor, settings: Settings) -> None:
    sign_up(visitor)
    settings.CACHE = replace(settings.CACHE, brain_url="http://127.0.0.1:9")
    visitor.go("/console/objects")
    visitor.sees("The edge cache does not answer at the moment.")


def test_the_page_fits_a_phone(
    visit: Callable[..., Visitor], picture: Callable[[Page, str], None]
) -> None:
    visitor = visit(**NARROW)
    sign_up(visitor)
    new_bucket(visitor)
    upload(visitor, ("a rather long name of a picture, as cameras make.png", "image/png", png()))
    visitor.sees_status("1 file uploaded")
    hold(visitor, "files")
    picture(visitor.page, "objects-narrow")
    visitor.page.locator("#file-rows .name").click()
    expect(visitor.page.get_by_role("img", name="40 × 30 pixels")).to_be_visible()
    hold_panel(visitor, "details")

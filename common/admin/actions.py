"""Actions of staff: confirmed on a separate page with a reason, and run once.

They require a recent proof of the second factor: a session of the admin lasts for hours.

An action locks its rows and reads them again, so that a form that is sent twice changes nothing the
second time. The action itself records its changes in the audit trail.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol
from uuid import uuid4

import structlog
from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import quote
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import OperationalError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.http import urlencode

from common.admin.pages import ReadOnlyAdmin
from common.errors import PlatformError

MAX_ROWS: Final = 100
REASON_CHARS: Final = 300
# The field of a code that proves the second factor again.
CODE_FIELD: Final = "proof_code"
TEMPLATE: Final = "admin/confirm_action.html"
# In the address of a list that Cancel leads to; its script takes it away.
BACK: Final = "back"
NOT_TAKEN: Final = "The database did not take it. Look at it before you try again."

log = structlog.get_logger(__name__)


class StaffSite(Protocol):
    """What an action needs of the admin site."""

    def has_recent_proof(self, request: HttpRequest) -> bool:
        """True if no further proof of the second factor is needed."""

    def require_recent_proof(self, request: HttpRequest) -> None:
        """Raise ValidationError without a proof, in the session or in the form."""


@dataclass(frozen=True, slots=True)
class ConfirmedAction:
    """An action that was confirmed. key: the same if its form is sent twice."""

    request: HttpRequest
    reason: str
    key: str

    @property
    def actor(self) -> str:
        """The member of staff, as named in the ledger."""
        return f"staff:{self.request.user}"


@dataclass(frozen=True, slots=True)
class StaffAction:
    """An action on rows of a list.

    name: in forms. title: on the button. warning: a sentence about the effect.
    work: runs on one row and returns False if there was nothing to do; raises PlatformError if the
    row must not be changed. label: of a row on the confirmation page. is_harmful: it takes
    something from whom it is done to, and its button is red.
    """

    name: str
    title: str
    warning: str
    work: Callable[[ConfirmedAction, Any], bool]
    label: Callable[[Any], str] = str
    is_harmful: bool = False


class ActionsAdmin(ReadOnlyAdmin):
    """A list with actions, for staff with write access."""

    staff_actions: Sequence[StaffAction] = ()
    max_rows = MAX_ROWS
    change_form_outer_before_template = "admin/row_actions.html"

    class Media:
        """Chooses the rows again after Cancel."""

        js = ("staff/choice.js",)

    def has_act_permission(self, request: HttpRequest) -> bool:
        """True if the member of staff has write access."""
        return may_act(request)

    def offered(self) -> Sequence[StaffAction]:
        """Return the actions of this list."""
        return self.staff_actions

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """Return the actions in Django's format; none for read-only staff."""
        if not self.has_act_permission(request):
            return {}
        return {each.name: (_runner(each), each.name, each.title) for each in self.offered()}

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Refuse actions of read-only staff, instead of showing the list again."""
        if request.method == "POST" and not self.has_act_permission(request):
            raise PermissionDenied
        if BACK in request.GET:
            query = request.GET.copy()
            del query[BACK]
            request.GET = query  # type: ignore[assignment]  # the stubs take an immutable one
        page: HttpResponse = super().changelist_view(request, extra_context)
        return page

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Offer the actions on the page of one row as well."""
        opts = self.model._meta
        offered = self.offered() if self.has_act_permission(request) else ()
        more = {
            "staff_actions": offered,
            "staff_actions_path": reverse(f"admin:{opts.app_label}_{opts.model_name}_changelist"),
        }
        page: HttpResponse = super().change_view(
            request, object_id, form_url, more | (extra_context or {})
        )
        return page


def may_act(request: HttpRequest) -> bool:
    """True if the member of staff has write access."""
    return bool(getattr(request.user, "may_act", False))


def confirmed(site: StaffSite, request: HttpRequest) -> ConfirmedAction | None:
    """Return the confirmed action; None if the request is not a confirmation with a reason.

    Also None without a recent proof of the second factor, or one in the form.
    """
    reason = _reason(request)
    if "confirmed" not in request.POST:
        return None
    if not reason:
        messages.error(request, "A reason is required: it is kept in the audit trail.")
        return None
    try:
        site.require_recent_proof(request)
    except ValidationError as exc:
        messages.error(request, exc.messages[0])
        return None
    return ConfirmedAction(request, reason, request.POST["confirmed"][:64])


def confirmation_context(site: StaffSite, request: HttpRequest) -> dict[str, Any]:
    """Return what the pages that ask for a reason show."""
    return {
        # A form with errors keeps its key and its reason.
        "key": request.POST.get("confirmed") or uuid4().hex,
        "reason": _reason(request),
        "reason_chars": REASON_CHARS,
        "needs_proof": not site.has_recent_proof(request),
        "code_field": CODE_FIELD,
    }


def _reason(request: HttpRequest) -> str:
    return request.POST.get("reason", "").strip()[:REASON_CHARS]


def confirmation(
    site: StaffSite,
    request: HttpRequest,
    context: dict[str, Any],
    action: StaffAction,
    rows: Sequence[Any],
) -> HttpResponse:
    """Return the page that asks for the reason."""
    return TemplateResponse(
        request,
        TEMPLATE,
        context
        | confirmation_context(site, request)
        | {
            "title": action.title,
            "action": action,
            "rows": [{"pk": row.pk, "label": action.label(row)} for row in rows],
            "checkbox": ACTION_CHECKBOX_NAME,
        },
    )


def do(action: StaffAction, confirmed_action: ConfirmedAction, rows: Sequence[Any]) -> None:
    """Run an action on each row, and show the results.

    Each row has its own transaction: rows before one that fails stay done.
    """
    done = 0
    for row in rows:
        try:
            done += action.work(confirmed_action, row)
        except PlatformError as exc:
            messages.error(confirmed_action.request, f"{row}: {exc.detail or exc.title}")
        except OperationalError:
            # Such as a deadlock with another member of staff.
            log.exception("staff_action_failed", action=action.name)
            messages.error(confirmed_action.request, f"{row}: {NOT_TAKEN}")
    if done:
        messages.success(
            confirmed_action.request, f"{action.title}: done for {done} of {len(rows)}."
        )
    else:
        messages.warning(confirmed_action.request, f"{action.title}: there was nothing to do.")


def _runner(action: StaffAction) -> Callable[..., HttpResponse | None]:
    def run(
        model_admin: ActionsAdmin, request: HttpRequest, found: QuerySet[Any]
    ) -> HttpResponse | None:
        rows = list(found[: MAX_ROWS + 1])
        if len(rows) > MAX_ROWS:
            messages.error(request, f"At most {MAX_ROWS} rows at a time.")
            return None
        site = model_admin.admin_site
        confirmed_action = confirmed(site, request)
        # Of the page of one row, which is shown again; else the list, whose rows stay chosen.
        is_of_row = "of_row" in request.POST and len(rows) == 1
        if is_of_row:
            opts = model_admin.opts
            path = f"admin:{opts.app_label}_{opts.model_name}_change"
            back = reverse(path, args=[quote(rows[0].pk)])
        else:
            query = request.GET.copy()
            # Else the link would lead to a part of this page, whose path is the same.
            query[BACK] = "1"
            chosen = urlencode({"chosen": [str(row.pk) for row in rows]}, doseq=True)
            back = f"{request.path}?{query.urlencode()}#{chosen}"
        if confirmed_action is None:
            context = site.each_context(request) | {
                "opts": model_admin.opts,
                "back": back,
                "is_of_row": is_of_row,
            }
            return confirmation(site, request, context, action, rows)
        do(action, confirmed_action, rows)
        return HttpResponseRedirect(back) if is_of_row else None

    return run

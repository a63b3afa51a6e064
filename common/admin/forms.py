"""Forms of staff: filled in, summarized as a sentence, confirmed with a reason, and run once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.template.response import TemplateResponse
from django.urls import reverse

from common.admin.actions import ConfirmedAction, confirmation_context, confirmed, may_act
from common.admin.pages import ReadOnlyAdmin
from common.errors import PlatformError

TEMPLATE: Final = "admin/staff_form.html"
Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StaffForm:
    """A form for an action that needs more input than a choice of rows.

    fields: builds the form from the sent data, if any. describe: returns a sentence about the
    effect. work: runs it, and returns False if there was nothing to do. Both raise PlatformError if
    it is not allowed.
    """

    title: str
    fields: Callable[[QueryDict | None], forms.Form]
    describe: Callable[[Values], str]
    work: Callable[[ConfirmedAction, Values], bool]


def answer(
    model_admin: ReadOnlyAdmin,
    request: HttpRequest,
    staff_form: StaffForm,
    *,
    row: Model | None = None,
) -> HttpResponse:
    """Return the form, its confirmation or, after the action, the list or the given row's page.

    Raises PermissionDenied for read-only staff.
    """
    if not may_act(request):
        raise PermissionDenied
    opts, site = model_admin.opts, model_admin.admin_site
    page = f"admin:{opts.app_label}_{opts.model_name}"
    back = reverse(f"{page}_change", args=[row.pk]) if row else reverse(f"{page}_changelist")
    form, sentence = staff_form.fields(request.POST or None), ""
    if form.is_valid():
        try:
            sentence = staff_form.describe(form.cleaned_data)
            confirmed_action = confirmed(site, request)
            if confirmed_action is not None:
                _do(staff_form, confirmed_action, form.cleaned_data, sentence)
                return HttpResponseRedirect(back)
        except PlatformError as exc:
            sentence = ""
            messages.error(request, exc.detail or exc.title)
    context = {
        **site.each_context(request),
        **confirmation_context(site, request),
        "opts": opts,
        "title": staff_form.title,
        "about": row or "",
        "form": form,
        "sentence": sentence,
        "back": back,
    }
    return TemplateResponse(request, TEMPLATE, context)


def _do(
    staff_form: StaffForm, confirmed_action: ConfirmedAction, values: Values, sentence: str
) -> None:
    if staff_form.work(confirmed_action, values):
        messages.success(confirmed_action.request, f"Done: {sentence}")
    else:
        messages.warning(confirmed_action.request, f"{staff_form.title}: there was nothing to do.")

"""The sign-in to Django's admin: password and second factor in one form."""

from typing import Any, cast

from django import forms
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone
from unfold.forms import AuthenticationForm

from accounts.audit_tags import AccountTag
from accounts.models import User
from audit import trail
from common.admin.actions import CODE_FIELD
from common.errors import PlatformError
from common.principals import PlatformRequest
from twofactor import registry
from twofactor.challenges.step_up import MAX_AGE_S
from twofactor.factors import holdings, throttle
from twofactor.factors.contract import ChallengeAnswer

BACKEND = "accounts.backends.StaffBackend"
PROVEN = "second_factor_of"
PROVEN_AT = "second_factor_at"
ENDED_BEFORE = "sessions_ended_before"


class StaffLoginForm(AuthenticationForm):  # type: ignore[misc]  # unfold ships no types
    """E-mail, password, and a code of the authenticator app or a backup code."""

    code = forms.CharField(
        max_length=64,
        label="Code",
        help_text="Of your authenticator app, or a backup code.",
        widget=forms.TextInput(attrs={"autocomplete": "one-time-code"}),
    )

    def __init__(self, request: HttpRequest | None = None, *args: Any, **kwargs: Any) -> None:
        super().__init__(request, *args, **kwargs)
        self.fields["code"].widget.attrs["class"] = self.fields["username"].widget.attrs["class"]

    def clean(self) -> dict[str, Any]:
        """Check the password, then the code; record in the session that the user has proven both.

        Raises ValidationError.
        """
        cleaned: dict[str, Any] = super().clean()
        user = self.get_user()
        if user is not None:
            code = cleaned.get("code", "")
            prove(self.request, user, code)
            note_proven(self.request, user)
            _record(self.request, user, code, outcome="success")
        return cleaned


def note_proven(request: HttpRequest, user: User) -> None:
    """Record in an admin session that the second factor was proven."""
    request.session[PROVEN] = str(user.pk)
    request.session[PROVEN_AT] = int(timezone.now().timestamp())
    request.session[ENDED_BEFORE] = user.sessions_ended


def is_proven(request: HttpRequest) -> bool:
    """True if the second factor was proven in this admin session, and it was not ended since."""
    user, session = request.user, request.session
    if not isinstance(user, User) or session.get(PROVEN) != str(user.pk):
        return False
    # A session from before this value existed began before any sessions were ended.
    is_current: bool = session.get(ENDED_BEFORE, 0) == user.sessions_ended
    return is_current


def is_recent(request: HttpRequest) -> bool:
    """True if the second factor was proven in this admin session a short time ago."""
    at_s = request.session.get(PROVEN_AT, 0)
    return bool(is_proven(request) and timezone.now().timestamp() - at_s <= MAX_AGE_S)


def require_recent(request: HttpRequest) -> None:
    """Require a second factor proven a short time ago, else by the code sent with the form.

    Raises ValidationError for a missing or a wrong code.
    """
    user, code = request.user, request.POST.get(CODE_FIELD, "")
    if is_recent(request):
        return
    if not code.strip() or not isinstance(user, User):
        raise ValidationError("Prove your second factor again for this.")
    prove(request, user, code, tag=AccountTag.ADMIN_SESSION_PROVE)
    note_proven_again(request, user, method=_method_of(code))


def note_proven_again(request: HttpRequest, user: User, *, method: str) -> None:
    """Record in the session and in the audit trail that the second factor was proven again."""
    note_proven(request, user)
    trail.record_staff(
        request,
        AccountTag.ADMIN_SESSION_PROVE,
        organization_id=user.organization_id,
        method=method,
    )


def prove(
    request: HttpRequest,
    user: User,
    code: str,
    *,
    tag: AccountTag = AccountTag.ADMIN_SESSION_CREATE,
) -> None:
    """Verify the second factor of a member of staff, under the factor's own throttle.

    tag: of the audit event of a wrong code. Raises ValidationError for a wrong code, and with
    instructions if there is no factor yet.
    """
    try:
        with transaction.atomic():
            is_right = _check(cast(PlatformRequest, request), user, code)
    except PlatformError as exc:
        raise ValidationError(exc.title) from exc
    # Raised outside the transaction, so that the attempt stays counted.
    if not is_right:
        _record(request, user, code, tag=tag, outcome="refused")
        raise ValidationError("The code is wrong.")


def _check(request: PlatformRequest, user: User, code: str) -> bool:
    user_holdings = holdings.holdings_of(user.pk, lock=True)
    method = _method_of(code)
    factor = user_holdings.factors.get(method)
    if not user_holdings.proper or factor is None or method not in user_holdings.askable:
        message = "Set up an authenticator app or a passkey in the console first: /console/security"
        raise ValidationError(message)
    now = timezone.now()
    throttle.refuse_throttled(factor, now)
    proof, answer = registry.factor_of(method).proof, ChallengeAnswer(code=code)
    if proof.check(factor, "", answer, challenge_id="", request=request, now=now):
        return True
    throttle.count(factor, now)
    return False


def _method_of(code: str) -> str:
    return "totp" if code.strip().isdigit() else "backup_codes"


def _record(
    request: HttpRequest,
    user: User,
    code: str,
    *,
    tag: AccountTag = AccountTag.ADMIN_SESSION_CREATE,
    outcome: str,
) -> None:
    trail.record_user(
        cast(PlatformRequest, request),
        tag,
        user,
        outcome=outcome,
        method=_method_of(code),
    )

"""Sign-in to Django's admin: the same checks and limits as the API's login, counted separately."""

from typing import Any, cast
from uuid import UUID

from django.contrib.auth.backends import BaseBackend
from django.http import HttpRequest
from django.utils import timezone

from accounts.audit_tags import AccountTag
from accounts.errors import InvalidCredentials
from accounts.models import User
from accounts.sessions.sessions import request_source
from accounts.signin import credentials, metrics, signin
from common.errors import PlatformError
from common.principals import PlatformRequest
from common.scoping import unscoped


class StaffBackend(BaseBackend):
    """Signs in platform staff only."""

    @unscoped("the credentials determine the user")
    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **_other: Any,
    ) -> User | None:
        """Return the staff user with this e-mail and password, or None."""
        if request is None or not username or not password:
            return None
        user: User | None = None
        try:
            with metrics.count_refusals("admin"):
                user = credentials.verify(
                    username,
                    password,
                    source=request_source(request),
                    now=timezone.now(),
                    counter="admin login",
                )
        except InvalidCredentials:
            pass
        except PlatformError:
            return None
        if user is not None and user.is_staff:
            return user
        tag = AccountTag.ADMIN_SESSION_CREATE
        signin.note_refused(cast(PlatformRequest, request), username, tag=tag)
        return None

    @unscoped("staff belong to the platform")
    def get_user(self, user_id: UUID) -> User | None:
        """Return the user of an admin session; None signs a disabled user out."""
        user: User | None = User.objects.filter(pk=user_id, is_active=True, is_staff=True).first()
        return user

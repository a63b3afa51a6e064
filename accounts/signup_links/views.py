"""``/v1/auth/signup/link`` and ``/v1/auth/signup/complete``."""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.errors import EmailTaken, HashingBusy, MailedTooOften, SignupLinkGone, TooManyAttempts
from accounts.mailed_secrets import MAX_TOKEN_CHARS
from accounts.serializers import SIGN_IN_RESULT, PasswordField
from accounts.signup_links import links
from common.api.views import NO_STORE, StrictSerializer
from common.api.viewsets import PlatformViewSet
from common.emails import AddressField
from common.names import NameField
from common.permissions import PUBLIC


class SignupLinkRequestSerializer(StrictSerializer):
    """The address to mail a link to."""

    email = AddressField()


class SignupLinkSerializer(serializers.Serializer[Any]):
    """The same for every address: if it can sign up, a link was mailed."""

    expires_at = serializers.IntegerField(help_text="Unix seconds")


class SignupLinkCompleteSerializer(StrictSerializer):
    """The token of the mailed link, and the password and organization of the new account."""

    token = serializers.CharField(max_length=MAX_TOKEN_CHARS)
    password = PasswordField()
    organization = NameField(max_length=200, required=False, allow_blank=True, default="")


class SignupLinkViewSet(PlatformViewSet):
    """Sign-up for a person who can read a mail to the address."""

    tag = "Sign in"
    access = {"link": PUBLIC, "complete": PUBLIC}
    errors = {
        "link": (MailedTooOften, TooManyAttempts),
        "complete": (EmailTaken, HashingBusy, SignupLinkGone, TooManyAttempts),
    }
    request_serializers = {
        "link": SignupLinkRequestSerializer,
        "complete": SignupLinkCompleteSerializer,
    }
    response_serializers = {"link": SignupLinkSerializer, "complete": SIGN_IN_RESULT}
    success_statuses = {
        "link": status.HTTP_202_ACCEPTED,
        "complete": status.HTTP_201_CREATED,
    }

    @extend_schema(summary="Request a sign-up link")
    @action(detail=False, methods=["post"])
    def link(self, request: Request) -> Response:
        """Mail a link that works once, within 24 hours.

        The response is the same whether or not the address has an account; only the mail differs.
        """
        expires_at = links.request_link(
            self.platform_request, self.read()["email"], now=timezone.now()
        )
        return self.respond({"expires_at": int(expires_at.timestamp())})

    @extend_schema(summary="Sign up with a mailed link")
    @action(detail=False, methods=["post"])
    def complete(self, request: Request) -> Response:
        """Create an account with a verified address, and sign in; the response is that of a login.

        The account gets an organization of its own. An account that used the address without
        verifying it loses the address, and keeps its organization, members and data; the response
        then has the warning `address_moved`.
        """
        done = links.complete(self.platform_request, **self.read(), now=timezone.now())
        return self.respond(done.answer, headers=NO_STORE)

"""``/v1/auth/oauth/*`` and ``/v1/auth/identities``."""

from http import HTTPStatus
from typing import Any

from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse, PolymorphicProxySerializer, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.oauth import (
    account_linking,
    browser_binding,
    callback,
    code_exchange,
    identities,
    transactions,
)
from accounts.oauth.account_linking import AccountLink
from accounts.oauth.form_post import FormPostParser, without_repeats
from accounts.oauth.models import Identity
from accounts.oauth.providers import registry
from accounts.oauth.serializers import (
    CodeExchangeSerializer,
    IdentitySerializer,
    LinkedSerializer,
    LinkSerializer,
    LinkStartedSerializer,
    ProvidersSerializer,
    StartSerializer,
    TicketSerializer,
)
from accounts.oauth.transactions import AuthorizationRequest, ProviderRedirect
from accounts.serializers import (
    EnrolmentRequiredSerializer,
    LoginAnswerSerializer,
    SecondFactorRequiredSerializer,
)
from platform_site.lib.api import NO_STORE, ApiView, CursorPages, StrictSerializer
from platform_site.lib.errors import MethodNotAllowed
from platform_site.lib.permissions import PUBLIC, USER

# The addresses on the way carry codes and states: no page is told where a browser came from.
ON_THE_WAY = NO_STORE | {"Referrer-Policy": "no-referrer"}


def _redirect(url: str) -> HttpResponse:
    # Not Django's: it refuses an app's own scheme, and the address was checked by us.
    return HttpResponse(status=HTTPStatus.FOUND, headers=ON_THE_WAY | {"Location": url})


def _pairs(request: Request) -> list[tuple[str, str]]:
    return [(name, value) for name, values in request.query_params.lists() for value in values]


class ProvidersView(ApiView):
    """The providers that one can sign in with."""

    access = {"GET": PUBLIC}

    @extend_schema(summary="List identity providers", responses=ProvidersSerializer)
    def get(self, request: Request) -> Response:
        """List the configured providers."""
        return Response({"providers": registry.configured()})


class StartView(ApiView):
    """Begin at a provider."""

    # A HEAD would begin, and a callback's would use the visit up, with nobody there to go on.
    http_method_names = ["get"]
    access = {"GET": PUBLIC}

    @extend_schema(
        summary="Start an external sign-in",
        parameters=[StartSerializer],
        responses={302: OpenApiResponse(description="On to the provider.")},
    )
    def get(self, request: Request, provider: str) -> HttpResponse:
        """Send the browser to the provider, to come back to `redirect_to` with a one-time code."""
        registry.settings_of(provider)
        now = timezone.now()
        if "ticket" in request.query_params:
            query = self._query(TicketSerializer)
            return self._send_to_provider(
                transactions.start_link(self.platform_request, provider, query["ticket"], now=now)
            )
        query = self._query(StartSerializer)
        query.pop("code_challenge_method")
        return self._send_to_provider(
            transactions.start_sign_in(
                self.platform_request, provider, AuthorizationRequest(**query), now=now
            )
        )

    def _query(self, serializer: type[StrictSerializer]) -> dict[str, Any]:
        bound = serializer(data=without_repeats(_pairs(self.request)))
        bound.is_valid(raise_exception=True)
        return dict(bound.validated_data)

    def _send_to_provider(self, target: ProviderRedirect) -> HttpResponse:
        response = _redirect(target.url)
        browser_binding.set_cookie(response, target.browser_secret, form_post=target.form_post)
        return response


class CallbackView(ApiView):
    """Come back from a provider."""

    http_method_names = ["get", "post"]
    access = {"GET": PUBLIC, "POST": PUBLIC}
    parser_classes = [FormPostParser]

    @extend_schema(
        operation_id="oauth_callback",
        summary="Return from a provider",
        description="Where providers send browsers back to; not for clients.",
        responses={302: OpenApiResponse(description="On to the client's `redirect_to`.")},
    )
    def get(self, request: Request, provider: str) -> HttpResponse:
        """Send the browser on to `redirect_to` with `code` or `error`."""
        return self._finish(provider, without_repeats(_pairs(request)), form_post=False)

    @extend_schema(
        operation_id="oauth_callback_by_post",
        summary="Return from a provider by form",
        description="Where Apple's page sends its form; not for clients.",
        request={"application/x-www-form-urlencoded": {"type": "object"}},
        responses={302: OpenApiResponse(description="On to the client's `redirect_to`.")},
    )
    def post(self, request: Request, provider: str) -> HttpResponse:
        """Send the browser on to `redirect_to` with `code` or `error`."""
        registry.settings_of(provider)
        return self._finish(provider, dict(request.data), form_post=True)

    def _finish(self, provider: str, values: dict[str, str], *, form_post: bool) -> HttpResponse:
        registry.settings_of(provider)
        if registry.uses_form_post(provider) != form_post:
            raise MethodNotAllowed
        return _redirect(
            callback.handle(self.platform_request, provider, values, now=timezone.now())
        )


class TokenView(ApiView):
    """Finish an external sign-in or link."""

    access = {"POST": PUBLIC}

    @extend_schema(
        summary="Exchange an external sign-in's code",
        request=CodeExchangeSerializer,
        responses=PolymorphicProxySerializer(
            component_name="ExternalSignIn",
            serializers={
                "authenticated": LoginAnswerSerializer,
                "mfa_required": SecondFactorRequiredSerializer,
                "mfa_enrollment_required": EnrolmentRequiredSerializer,
                "linked": LinkedSerializer,
            },
            resource_type_field_name="status",
        ),
    )
    def post(self, request: Request) -> Response:
        """Answer as a login does; for a link, which takes the session that began it: `linked`."""
        body = self.read(CodeExchangeSerializer)
        done = code_exchange.exchange(
            self.platform_request, body["code"], body["code_verifier"], now=timezone.now()
        )
        answer = _linked(done) if isinstance(done, AccountLink) else done.answer
        return Response(answer, headers=NO_STORE)


class LinkView(ApiView):
    """Link an account at a provider to one's own."""

    access = {"POST": USER.fresh()}

    @extend_schema(
        summary="Link an external account",
        request=LinkSerializer,
        responses=PolymorphicProxySerializer(
            component_name="Link",
            serializers={"started": LinkStartedSerializer, "linked": LinkedSerializer},
            resource_type_field_name="status",
        ),
    )
    def post(self, request: Request, provider: str) -> Response:
        """Begin a link, or finish the one that a sign-in's `link_required` asked for."""
        body = self.read(LinkSerializer)
        registry.settings_of(provider)
        now = timezone.now()
        if "link_token" in body:
            done = account_linking.link_by_token(
                self.platform_request, self.principal, provider, body["link_token"], now=now
            )
            return Response(_linked(done), headers=NO_STORE)
        wanted = AuthorizationRequest(body["redirect_to"], body["state"], body["code_challenge"])
        url, expires_at = transactions.prepare_link(
            self.platform_request, self.principal, provider, wanted, now=now
        )
        answer = {
            "status": "started",
            "start_url": url,
            "expires_at": int(expires_at.timestamp()),
        }
        return Response(answer, headers=NO_STORE)


class IdentitiesView(ApiView):
    """The caller's linked accounts."""

    access = {"GET": USER}

    @extend_schema(
        operation_id="identities_list",
        summary="List linked accounts",
        parameters=CursorPages.parameters(),
        responses=CursorPages.schema_of(IdentitySerializer),
    )
    def get(self, request: Request) -> Response:
        """List the accounts at providers that sign the caller in."""
        mine = Identity.scoped.within_organization(self.principal.organization_id)
        rows = mine.filter(user_id=self.principal.own_id)
        return CursorPages.respond(self, rows, serializer=IdentitySerializer)


class IdentityView(ApiView):
    """One linked account of the caller's."""

    access = {"DELETE": USER.fresh()}

    @extend_schema(summary="Unlink an account", responses={204: None})
    def delete(self, request: Request, identity_id: str) -> Response:
        """Unlink it, unless it is the only way to sign in; roles that follow from it go too."""
        identities.remove(self.platform_request, self.principal, identity_id, now=timezone.now())
        return Response(status=status.HTTP_204_NO_CONTENT)


def _linked(done: AccountLink) -> dict[str, Any]:
    return {"status": "linked", "identity": IdentitySerializer(done.identity).data}

"""External sign-in: ``/v1/auth/oauth/*``, ``/v1/auth/identities``, ``/v1/sign-in-providers``."""

from http import HTTPStatus
from typing import Any, Final

from django.conf import settings
from django.db.models import Count, QuerySet
from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.utils import (
    OpenApiParameter,
    OpenApiResponse,
    extend_schema,
    extend_schema_view,
)
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.errors import (
    EmailTaken,
    HashingBusy,
    SessionRevoked,
    TokenSuperseded,
    TooManyAttempts,
)
from common.api.views import NO_STORE, StrictSerializer
from common.api.viewsets import ListAction, PlatformViewSet
from common.errors import (
    MethodNotAllowed,
    NotAuthenticated,
    PayloadTooLarge,
    TokenExpired,
    TokenInvalid,
)
from common.openapi import shapes
from common.permissions import PUBLIC, USER, needs
from environments.errors import EnvironmentNotFound
from oauth import account_linking, identities
from oauth.account_linking import AccountLink
from oauth.account_matching import InvitationChoice
from oauth.errors import (
    AccessDenied,
    CodeGone,
    DomainNotAllowed,
    EmailMissing,
    EmailUnverified,
    IdentityRefused,
    IdentityTaken,
    InvitationOpen,
    LastLoginMethod,
    LinkForeign,
    LinkRequired,
    ProviderNotConfigured,
    ProviderUnavailable,
    RedirectNotAllowed,
    StateInvalid,
)
from oauth.flow import callback, code_exchange, flow_state
from oauth.flow.callback import FormPostParser, without_repeats
from oauth.flow.flow_state import AuthorizationRequest
from oauth.models import Identity, Provider
from oauth.providers import configured
from oauth.serializers import (
    CODE_EXCHANGE_RESULT,
    LINK_RESULT,
    CodeExchangeSerializer,
    IdentitySerializer,
    LinkSerializer,
    ProvidersSerializer,
    ProviderUseSerializer,
    StartSerializer,
    TicketSerializer,
)
from organizations.errors import InvitationGone

# The URLs of a redirect contain codes and states, which a Referer would reveal to other pages.
REDIRECT_HEADERS = NO_STORE | {"Referrer-Policy": "no-referrer"}
# RFC 6749 section 4.1.2; providers add parameters of their own, which are ignored.
CALLBACK_QUERY = [
    OpenApiParameter("code", description="The provider's code."),
    OpenApiParameter("state", description="The value that the start sent to the provider."),
    OpenApiParameter("error", description="Why the provider refused."),
    OpenApiParameter("iss", description="The provider's issuer, if it sends one (RFC 9207)."),
]
TICKET = OpenApiParameter("ticket", description="Of a link's `url`, in place of all others.")
# Members listed per provider; the list of members can be filtered for the others.
MAX_LISTED_MEMBERS: Final = 20


class OAuthViewSet(PlatformViewSet):
    """Sign-in with a provider: start, callback, exchange of the one-time code, linking."""

    tag = "Sign in with a provider"
    access = {
        "providers": PUBLIC,
        "start": PUBLIC,
        "callback": PUBLIC,
        "callback_by_post": PUBLIC,
        "token": PUBLIC,
        "link": USER.fresh(),
    }
    errors = {
        "start": (
            RedirectNotAllowed,
            EnvironmentNotFound,
            ProviderNotConfigured,
            CodeGone,
            TooManyAttempts,
        ),
        "callback": (StateInvalid, ProviderNotConfigured, MethodNotAllowed, TooManyAttempts),
        "callback_by_post": (
            StateInvalid,
            ProviderNotConfigured,
            MethodNotAllowed,
            PayloadTooLarge,
            TooManyAttempts,
        ),
        "token": (
            IdentityRefused,
            NotAuthenticated,
            SessionRevoked,
            TokenSuperseded,
            TokenExpired,
            TokenInvalid,
            AccessDenied,
            DomainNotAllowed,
            EmailMissing,
            EmailUnverified,
            LinkForeign,
            EnvironmentNotFound,
            EmailTaken,
            IdentityTaken,
            InvitationGone,
            InvitationOpen,
            LinkRequired,
            CodeGone,
            TooManyAttempts,
            HashingBusy,
            ProviderUnavailable,
        ),
        "link": (
            RedirectNotAllowed,
            LinkForeign,
            ProviderNotConfigured,
            EmailTaken,
            IdentityTaken,
            CodeGone,
            TooManyAttempts,
            ProviderUnavailable,
        ),
    }
    request_serializers = {"token": CodeExchangeSerializer, "link": LinkSerializer}
    query_serializers = {"start": StartSerializer}
    response_serializers = {
        "providers": ProvidersSerializer,
        "token": CODE_EXCHANGE_RESULT,
        "link": LINK_RESULT,
    }

    @extend_schema(summary="List identity providers")
    @action(detail=False)
    def providers(self, request: Request) -> Response:
        """List the configured providers."""
        return self.respond({"providers": configured.configured()})

    @extend_schema(
        summary="Start an external sign-in",
        parameters=[TICKET],
        responses={302: OpenApiResponse(description="Redirect to the provider.")},
    )
    # Without HEAD: it would start a transaction, and a callback's would use one up.
    @action(detail=False, url_path="<str:provider>/start", http_method_names=["get"])
    def start(self, request: Request, provider: str) -> HttpResponse:
        """Send the browser to the provider, to come back to `redirect_to` with a one-time code."""
        configured.settings_of(provider)
        now = timezone.now()
        if "ticket" in request.query_params:
            ticket = self._query(TicketSerializer)["ticket"]
            target = flow_state.start_link(self.platform_request, provider, ticket, now=now)
        else:
            wanted = _authorization_request(self._query(StartSerializer))
            target = flow_state.start_sign_in(self.platform_request, provider, wanted, now=now)
        response = _redirect(target.url)
        flow_state.set_cookie(response, target.browser_secret, form_post=target.form_post)
        return response

    @extend_schema(
        operation_id="oauth_callback",
        summary="Return from a provider",
        description="Where providers send browsers back to; not for clients.",
        parameters=CALLBACK_QUERY,
        responses={302: OpenApiResponse(description="Redirect to the client's `redirect_to`.")},
    )
    @action(
        detail=False,
        url_path="<str:provider>/callback",
        http_method_names=["get", "post"],
        parser_classes=[FormPostParser],
    )
    def callback(self, request: Request, provider: str) -> HttpResponse:
        """Send the browser on to `redirect_to` with `code` or `error`."""
        configured.settings_of(provider)
        return self._handle_callback(provider, self._query_parameters(), form_post=False)

    @extend_schema(
        operation_id="oauth_callback_by_post",
        summary="Return from a provider by form",
        description="Where Apple's page sends its form; not for clients.",
        request={"application/x-www-form-urlencoded": {"type": "object"}},
        responses={302: OpenApiResponse(description="Redirect to the client's `redirect_to`.")},
    )
    @callback.mapping.post
    def callback_by_post(self, request: Request, provider: str) -> HttpResponse:
        """Send the browser on to `redirect_to` with `code` or `error`."""
        configured.settings_of(provider)
        return self._handle_callback(provider, dict(request.data), form_post=True)

    @extend_schema(summary="Exchange an external sign-in's code")
    @action(detail=False, methods=["post"])
    def token(self, request: Request) -> Response:
        """Answer like a login; with `linked` for a link, which requires its session's token.

        A new user whose verified address is invited joins the organization of `invitation_id`.
        """
        body = self.read()
        given = body.get("invitation_id")
        choice = InvitationChoice(given, is_made="invitation_id" in body)
        outcome = code_exchange.exchange(
            self.platform_request,
            body["code"],
            body["code_verifier"],
            choice=choice,
            now=timezone.now(),
        )
        result = _linked(outcome) if isinstance(outcome, AccountLink) else outcome.answer
        return self.respond(result, headers=NO_STORE)

    @extend_schema(summary="Link an external account")
    @action(detail=False, methods=["post"], url_path="<str:provider>/link")
    def link(self, request: Request, provider: str) -> Response:
        """Start a link, or complete the one of a sign-in's `link_required`."""
        body = self.read()
        configured.settings_of(provider)
        now = timezone.now()
        if "link_token" in body:
            completed = account_linking.link_by_token(
                self.platform_request, self.principal, provider, body["link_token"], now=now
            )
            return self.respond(_linked(completed), headers=NO_STORE)
        url, expires_at = flow_state.prepare_link(
            self.platform_request, self.principal, provider, _authorization_request(body), now=now
        )
        started = {"status": "started", "start_url": url, "expires_at": expires_at}
        return self.respond(started, headers=NO_STORE)

    def _query_parameters(self) -> dict[str, str]:
        lists = self.request.query_params.lists()
        return without_repeats([(name, value) for name, values in lists for value in values])

    def _query(self, serializer: type[StrictSerializer]) -> dict[str, Any]:
        return self.validated(serializer, self._query_parameters())

    def _handle_callback(
        self, provider: str, parameters: dict[str, str], *, form_post: bool
    ) -> HttpResponse:
        if configured.uses_form_post(provider) != form_post:
            raise MethodNotAllowed
        return _redirect(
            callback.handle(self.platform_request, provider, parameters, now=timezone.now())
        )


@extend_schema_view(
    list=extend_schema(
        operation_id="identities_list",
        summary="List linked accounts",
        description="List the accounts at providers that the caller can sign in with.",
    )
)
class IdentityViewSet(ListAction):
    """The caller's linked accounts."""

    tag = "Sign in with a provider"
    access = {"list": USER, "destroy": USER.fresh()}
    errors = {"destroy": (LastLoginMethod,)}
    serializer_class = IdentitySerializer
    lookup_url_kwarg = "identity_id"
    path_schemas = {"identity_id": shapes.UUID}

    def get_queryset(self) -> QuerySet[Identity]:
        """Return the caller's identities."""
        mine = Identity.objects.all()
        rows: QuerySet[Identity] = mine.filter(user_id=self.principal.own_id)
        return rows

    @extend_schema(summary="Unlink an account")
    def destroy(self, request: Request, identity_id: str) -> Response:
        """Unlink an account and remove its derived roles; refused for the only sign-in method."""
        identities.remove(self.platform_request, self.principal, identity_id, now=timezone.now())
        return self.no_content()


class ProviderUseViewSet(PlatformViewSet):
    """The sign-in providers and their use, for an organization's admins."""

    tag = "Sign in with a provider"
    access = {"list": needs("members", "read")}
    serializer_class = ProviderUseSerializer
    pagination_class = None

    @extend_schema(summary="List sign-in providers", operation_id="sign_in_providers_list")
    def list(self, request: Request) -> Response:
        """List the providers that are configured, and the members who use them.

        A provider that is no longer configured is listed while members are linked to it; they
        cannot sign in with it.
        """
        return self.respond({"providers": _provider_use(self.principal.organization_id)})


def _provider_use(organization_id: int) -> list[dict[str, Any]]:
    """Return the providers that are configured, or that members are linked to."""
    rows = Identity.objects.filter(organization_id=organization_id)
    counts = dict(rows.values_list("provider").annotate(Count("user_id", distinct=True)))
    return [
        {
            "name": provider.value,
            "title": str(provider.label),
            "is_offered": provider.value in settings.OAUTH.providers,
            "member_count": counts.get(provider.value, 0),
            "members": _members_of(organization_id, provider) if provider.value in counts else [],
        }
        for provider in Provider
        if provider.value in settings.OAUTH.providers or provider.value in counts
    ]


def _members_of(organization_id: int, provider: Provider) -> list[str]:
    rows = Identity.objects.filter(organization_id=organization_id, provider=provider.value)
    emails = rows.exclude(user__email="").values_list("user__email", flat=True)
    return list(emails.distinct().order_by("user__email")[:MAX_LISTED_MEMBERS])


def _redirect(url: str) -> HttpResponse:
    # Django's own class refuses the schemes of native apps; the URL was checked already.
    return HttpResponse(status=HTTPStatus.FOUND, headers=REDIRECT_HEADERS | {"Location": url})


def _authorization_request(values: dict[str, Any]) -> AuthorizationRequest:
    return AuthorizationRequest(
        values["redirect_to"],
        values["state"],
        values["code_challenge"],
        environment=values.get("environment", ""),
    )


def _linked(link: AccountLink) -> dict[str, Any]:
    return {"status": "linked", "identity": link.identity}

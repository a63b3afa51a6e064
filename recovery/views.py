"""``/v1/auth/recovery/*``, and the admin's reset of a member's second factors."""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.serializers import EnrolmentRequiredSerializer
from platform_site.lib.api import NO_STORE, ApiView
from platform_site.lib.errors import InvalidRequest
from platform_site.lib.permissions import PUBLIC, USER, needs
from recovery import (
    challenges,
    completion,
    initiation,
    lost_factor,
    member_reset,
    questions,
    recoveries,
    reset_tokens,
    verification,
)
from recovery.models import Purpose
from recovery.serializers import (
    RecoveryAnsweredSerializer,
    RecoveryAnswersSerializer,
    RecoveryCancelSerializer,
    RecoveryChallengeRequestSerializer,
    RecoveryCompleteSerializer,
    RecoveryDelayedSerializer,
    RecoveryInitiatedSerializer,
    RecoveryInitiateSerializer,
    RecoveryProveSerializer,
    RecoveryQuestionsSerializer,
    RecoveryQuestionsUpdateSerializer,
    RecoveryVerifiedSerializer,
    RecoveryVerifySerializer,
    ResetFactorsSerializer,
)
from twofactor.factors.contract import ChallengeAnswer
from twofactor.serializers import ChallengeSerializer


def _factor_proof(body: dict[str, Any]) -> challenges.FactorProof:
    answer = ChallengeAnswer(code=body["code"], credential=body["credential"])
    return challenges.FactorProof(body["challenge_id"], answer)


class InitiateView(ApiView):
    """Start a recovery."""

    access = {"POST": PUBLIC}

    @extend_schema(
        summary="Start a recovery",
        request=RecoveryInitiateSerializer,
        responses={202: RecoveryInitiatedSerializer},
    )
    def post(self, request: Request) -> Response:
        """Have a token sent, if there is such an account; the answer is the same if not."""
        body = self.read(RecoveryInitiateSerializer)
        answer = initiation.start(
            self.platform_request,
            initiation.Claim(body["org_id"], body["email"]),
            method=body["method"],
            purpose=body["purpose"],
            now=timezone.now(),
        )
        return Response(answer, status=status.HTTP_202_ACCEPTED, headers=NO_STORE)


class AnswersView(ApiView):
    """Answer security questions."""

    access = {"POST": PUBLIC}

    @extend_schema(
        summary="Answer the security questions",
        request=RecoveryAnswersSerializer,
        responses={202: RecoveryAnsweredSerializer},
    )
    def post(self, request: Request) -> Response:
        """Have the token mailed, if the answers are right; the answer is the same if not."""
        body = self.read(RecoveryAnswersSerializer)
        expires_at = questions.answer(
            self.platform_request, body["recovery_id"], body["answers"], now=timezone.now()
        )
        answer = {"expires_at": int(expires_at.timestamp())}
        return Response(answer, status=status.HTTP_202_ACCEPTED, headers=NO_STORE)


class VerifyView(ApiView):
    """Verify the token that was delivered."""

    access = {"POST": PUBLIC}

    @extend_schema(
        summary="Verify a recovery token",
        request=RecoveryVerifySerializer,
        responses=RecoveryVerifiedSerializer,
    )
    def post(self, request: Request) -> Response:
        """Exchange the token, once, for a `reset_token` that is good for ten minutes."""
        body = self.read(RecoveryVerifySerializer)
        answer = verification.verify(
            self.platform_request, body["recovery_id"], body["token"], now=timezone.now()
        )
        return Response(answer, headers=NO_STORE)


class RecoveryChallengeView(ApiView):
    """Ask for a second factor on the way."""

    access = {"POST": PUBLIC}

    @extend_schema(
        summary="Create a challenge for a recovery",
        request=RecoveryChallengeRequestSerializer,
        responses=ChallengeSerializer,
    )
    def post(self, request: Request) -> Response:
        """Give a challenge; never over the channel that carried the recovery token."""
        body = self.read(RecoveryChallengeRequestSerializer)
        answer = challenges.create(body["reset_token"], body["method"], now=timezone.now())
        return Response(answer, headers=NO_STORE)


class ProveView(ApiView):
    """Prove the first factor, where the second is lost."""

    access = {"POST": PUBLIC}

    @extend_schema(
        summary="Prove the first factor",
        request=RecoveryProveSerializer,
        responses={202: RecoveryDelayedSerializer},
    )
    def post(self, request: Request) -> Response:
        """Begin the delay after which the second factors are removed; all addresses are told."""
        body = self.read(RecoveryProveSerializer)
        first = lost_factor.FirstFactor(body["password"], _factor_proof(body))
        answer = lost_factor.prove(
            self.platform_request, body["reset_token"], first, now=timezone.now()
        )
        return Response(answer, status=status.HTTP_202_ACCEPTED, headers=NO_STORE)


class CompleteView(ApiView):
    """Complete a recovery."""

    access = {"POST": PUBLIC}

    @extend_schema(
        summary="Complete a recovery",
        request=RecoveryCompleteSerializer,
        responses={200: EnrolmentRequiredSerializer, 204: None},
    )
    def post(self, request: Request) -> Response:
        """Set a new password (204), or set up a new second factor (200); never a session."""
        body = self.read(RecoveryCompleteSerializer)
        now = timezone.now()
        pointer = reset_tokens.read(body["reset_token"], now=now)
        is_lost_factor = recoveries.peek(pointer, now=now).purpose == Purpose.SECOND_FACTOR
        if is_lost_factor == ("password" in body):
            message = "Not for a lost second factor." if is_lost_factor else "Choose a new one."
            raise InvalidRequest.for_field("password", message, code="required")
        if is_lost_factor:
            answer = lost_factor.complete(self.platform_request, pointer, now=now)
            return Response(answer, headers=NO_STORE)
        choice = completion.Choice(body["password"], _factor_proof(body), body["new_account"])
        completion.set_password(self.platform_request, pointer, choice, now=now)
        return Response(status=status.HTTP_204_NO_CONTENT, headers=NO_STORE)


class CancelView(ApiView):
    """Cancel a recovery."""

    access = {"POST": PUBLIC}

    @extend_schema(
        summary="Cancel a recovery", request=RecoveryCancelSerializer, responses={204: None}
    )
    def post(self, request: Request) -> Response:
        """End a recovery with the token of a notice."""
        body = self.read(RecoveryCancelSerializer)
        lost_factor.cancel(self.platform_request, body["token"], now=timezone.now())
        return Response(status=status.HTTP_204_NO_CONTENT, headers=NO_STORE)


class QuestionsView(ApiView):
    """One's own security questions."""

    access = {"GET": USER.fresh(), "PUT": USER.fresh()}

    @extend_schema(summary="Read one's security questions", responses=RecoveryQuestionsSerializer)
    def get(self, request: Request) -> Response:
        """Give the catalogue and which questions have an answer, never the answers."""
        return Response(questions.mine(self.principal), headers=NO_STORE)

    @extend_schema(
        summary="Answer one's security questions",
        request=RecoveryQuestionsUpdateSerializer,
        responses=RecoveryQuestionsSerializer,
    )
    def put(self, request: Request) -> Response:
        """Replace all answers by three, or by none."""
        body = self.read(RecoveryQuestionsUpdateSerializer)
        questions.replace(
            self.platform_request, self.principal, body["answers"], now=timezone.now()
        )
        return Response(questions.mine(self.principal), headers=NO_STORE)


class ResetFactorsView(ApiView):
    """Reset a member's second factors."""

    access = {"POST": needs("members", "update").fresh()}

    @extend_schema(
        summary="Reset a member's second factors",
        request=ResetFactorsSerializer,
        responses={204: None},
    )
    def post(self, request: Request, user_id: str) -> Response:
        """Remove every factor and end every session of a member, who is told by whom and why."""
        body = self.read(ResetFactorsSerializer)
        member_reset.reset_factors(
            self.platform_request, self.principal, user_id, reason=body["reason"]
        )
        return Response(status=status.HTTP_204_NO_CONTENT)

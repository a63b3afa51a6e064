"""``/v1/auth/recovery/*``, and the admin's reset of a member's second factors."""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.errors import EmailTaken, HashingBusy, InvalidCredentials, TooManyAttempts
from accounts.serializers import EnrolmentRequiredSerializer
from common.api.views import NO_STORE
from common.api.viewsets import PlatformViewSet
from common.errors import InvalidRequest
from common.openapi import shapes
from common.permissions import PUBLIC, USER, needs
from recovery import member_reset, questions, recovery_rows
from recovery.errors import (
    MalformedRecoveryToken,
    NoIndependentFactor,
    OwnFactors,
    QuestionsDisabled,
    RecoveryChallengeRequired,
    RecoveryGone,
    RecoveryNotDue,
    RecoveryTokenRejected,
    RecoveryTooOften,
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
from recovery.steps import challenges, completion, initiation, lost_factor, verification
from recovery.tokens import reset_tokens
from twofactor.challenges.serializers import ChallengeSerializer
from twofactor.errors import (
    ChallengeGone,
    ChannelUnavailable,
    CodeRejected,
    FactorNotAllowed,
    FactorSlowed,
    FactorWornOut,
    MalformedCode,
    MalformedCredential,
    MethodNotEnabled,
    SendingTooOften,
)
from twofactor.factors.contract import ChallengeAnswer


def _factor_proof(body: dict[str, Any]) -> challenges.FactorProof:
    answer = ChallengeAnswer(code=body["code"], credential=body["credential"])
    return challenges.FactorProof(body["challenge_id"], answer)


class RecoveryViewSet(PlatformViewSet):
    """The steps of a recovery; each is authorized by the result of the previous one."""

    tag = "Recovery"
    access = {
        "initiate": PUBLIC,
        "answers": PUBLIC,
        "verify": PUBLIC,
        "challenge": PUBLIC,
        "prove": PUBLIC,
        "complete": PUBLIC,
        "cancel": PUBLIC,
    }
    errors = {
        "initiate": (RecoveryTooOften, TooManyAttempts, HashingBusy, ChannelUnavailable),
        "answers": (RecoveryGone, RecoveryTooOften, HashingBusy),
        "verify": (MalformedRecoveryToken, RecoveryTokenRejected, RecoveryGone),
        "challenge": (
            FactorWornOut,
            FactorNotAllowed,
            MethodNotEnabled,
            NoIndependentFactor,
            RecoveryGone,
            FactorSlowed,
            SendingTooOften,
            ChannelUnavailable,
        ),
        "prove": (
            MalformedCode,
            MalformedCredential,
            CodeRejected,
            InvalidCredentials,
            FactorWornOut,
            NoIndependentFactor,
            RecoveryNotDue,
            ChallengeGone,
            RecoveryGone,
            FactorSlowed,
            TooManyAttempts,
            HashingBusy,
        ),
        "complete": (
            MalformedCode,
            MalformedCredential,
            CodeRejected,
            FactorWornOut,
            FactorNotAllowed,
            RecoveryChallengeRequired,
            EmailTaken,
            MethodNotEnabled,
            NoIndependentFactor,
            RecoveryNotDue,
            ChallengeGone,
            RecoveryGone,
            FactorSlowed,
            TooManyAttempts,
            HashingBusy,
        ),
        "cancel": (MalformedRecoveryToken, RecoveryGone),
    }
    request_serializers = {
        "initiate": RecoveryInitiateSerializer,
        "answers": RecoveryAnswersSerializer,
        "verify": RecoveryVerifySerializer,
        "challenge": RecoveryChallengeRequestSerializer,
        "prove": RecoveryProveSerializer,
        "complete": RecoveryCompleteSerializer,
        "cancel": RecoveryCancelSerializer,
    }
    response_serializers = {
        "initiate": RecoveryInitiatedSerializer,
        "answers": RecoveryAnsweredSerializer,
        "verify": RecoveryVerifiedSerializer,
        "challenge": ChallengeSerializer,
        "prove": RecoveryDelayedSerializer,
        "complete": EnrolmentRequiredSerializer,
        "cancel": None,
    }
    success_statuses = {
        "initiate": status.HTTP_202_ACCEPTED,
        "answers": status.HTTP_202_ACCEPTED,
        "prove": status.HTTP_202_ACCEPTED,
    }

    @extend_schema(summary="Start a recovery")
    @action(detail=False, methods=["post"])
    def initiate(self, request: Request) -> Response:
        """Send a token if the account exists; the response is the same if not."""
        body = self.read()
        answer = initiation.start(
            self.platform_request,
            initiation.ClaimedAccount(body.get("org_id"), body["email"]),
            method=body["method"],
            purpose=body["purpose"],
            now=timezone.now(),
        )
        return self.respond(answer, headers=NO_STORE)

    @extend_schema(summary="Answer the security questions")
    @action(detail=False, methods=["post"])
    def answers(self, request: Request) -> Response:
        """Mail the token if the answers are right; the response is the same if not."""
        body = self.read()
        expires_at = questions.answer(
            self.platform_request, body["recovery_id"], body["answers"], now=timezone.now()
        )
        return self.respond({"expires_at": int(expires_at.timestamp())}, headers=NO_STORE)

    @extend_schema(summary="Verify a recovery token")
    @action(detail=False, methods=["post"])
    def verify(self, request: Request) -> Response:
        """Exchange the token, once, for a `reset_token` that is valid for ten minutes."""
        body = self.read()
        answer = verification.verify(
            self.platform_request, body["recovery_id"], body["token"], now=timezone.now()
        )
        return self.respond(answer, headers=NO_STORE)

    @extend_schema(summary="Create a challenge for a recovery")
    @action(detail=False, methods=["post"])
    def challenge(self, request: Request) -> Response:
        """Return a challenge; never over the channel that carried the recovery token."""
        body = self.read()
        answer = challenges.create(body["reset_token"], body["method"], now=timezone.now())
        return self.respond(answer, headers=NO_STORE)

    @extend_schema(summary="Prove the first factor")
    @action(detail=False, methods=["post"])
    def prove(self, request: Request) -> Response:
        """Start the delay after which the second factors are removed; every address is notified."""
        body = self.read()
        first = lost_factor.FirstFactor(body["password"], _factor_proof(body))
        answer = lost_factor.prove(
            self.platform_request, body["reset_token"], first, now=timezone.now()
        )
        return self.respond(answer, headers=NO_STORE)

    @extend_schema(
        summary="Complete a recovery", responses={200: EnrolmentRequiredSerializer, 204: None}
    )
    @action(detail=False, methods=["post"])
    def complete(self, request: Request) -> Response:
        """Set a new password (204), or set up a new second factor (200); opens no session."""
        body, now = self.read(), timezone.now()
        pointer = reset_tokens.read(body["reset_token"], now=now)
        is_lost_factor = recovery_rows.peek(pointer, now=now).purpose == Purpose.SECOND_FACTOR
        if is_lost_factor == ("password" in body):
            message = "Not for a lost second factor." if is_lost_factor else "Choose a new one."
            raise InvalidRequest.for_field("password", message, code="required")
        if is_lost_factor:
            answer = lost_factor.complete(self.platform_request, pointer, now=now)
            return self.respond(answer, headers=NO_STORE)
        choice = completion.CompletionRequest(
            body["password"], _factor_proof(body), body["new_account"]
        )
        completion.set_password(self.platform_request, pointer, choice, now=now)
        return Response(status=status.HTTP_204_NO_CONTENT, headers=NO_STORE)

    @extend_schema(summary="Cancel a recovery")
    @action(detail=False, methods=["post"])
    def cancel(self, request: Request) -> Response:
        """Cancel a recovery with the token of a notice."""
        lost_factor.cancel(self.platform_request, self.read()["token"], now=timezone.now())
        return self.no_content(headers=NO_STORE)


class SecurityQuestionViewSet(PlatformViewSet):
    """The caller's own security questions."""

    tag = "Recovery"
    access = {"questions": USER.fresh(), "replace": USER.fresh()}
    errors = {"replace": (QuestionsDisabled, HashingBusy)}
    serializer_class = RecoveryQuestionsSerializer
    request_serializers = {"replace": RecoveryQuestionsUpdateSerializer}

    @extend_schema(summary="Read the caller's security questions")
    @action(detail=False)
    def questions(self, request: Request) -> Response:
        """Return the catalogue and which questions have an answer, never the answers."""
        return self.respond(questions.mine(self.principal), headers=NO_STORE)

    @extend_schema(summary="Answer the caller's security questions")
    @questions.mapping.put
    def replace(self, request: Request) -> Response:
        """Replace all answers by three, or by none."""
        answers = self.read()["answers"]
        questions.replace(self.platform_request, self.principal, answers, now=timezone.now())
        return self.respond(questions.mine(self.principal), headers=NO_STORE)


class MemberFactorsViewSet(PlatformViewSet):
    """The second factors of a member, for an admin."""

    tag = "Members"
    access = {"reset": needs("members", "update").fresh()}
    errors = {"reset": (OwnFactors,)}
    request_serializers = {"reset": ResetFactorsSerializer}
    response_serializers = {"reset": None}
    path_schemas = {"user_id": shapes.UUID}

    @extend_schema(summary="Reset a member's second factors")
    @action(detail=False, methods=["post"], url_path="<str:user_id>/factors/reset")
    def reset(self, request: Request, user_id: str) -> Response:
        """Remove every factor and end every session of a member; mail the reason to the member."""
        member_reset.reset_factors(
            self.platform_request, self.principal, user_id, reason=self.read()["reason"]
        )
        return self.no_content()

"""Paths of recovery."""

from django.urls import path

from recovery import views

PREFIX = "v1/auth/recovery"

urlpatterns = [
    path(f"{PREFIX}/initiate", views.InitiateView.as_view()),
    path(f"{PREFIX}/answers", views.AnswersView.as_view()),
    path(f"{PREFIX}/verify", views.VerifyView.as_view()),
    path(f"{PREFIX}/challenge", views.RecoveryChallengeView.as_view()),
    path(f"{PREFIX}/prove", views.ProveView.as_view()),
    path(f"{PREFIX}/complete", views.CompleteView.as_view()),
    path(f"{PREFIX}/cancel", views.CancelView.as_view()),
    path(f"{PREFIX}/questions", views.QuestionsView.as_view()),
    path("v1/members/<str:user_id>/factors/reset", views.ResetFactorsView.as_view()),
]

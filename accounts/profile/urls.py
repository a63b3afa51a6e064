"""Paths of one's own account."""

from django.urls import path

from accounts.profile import views

urlpatterns = [
    path("v1/auth/sessions", views.SessionsView.as_view()),
    path("v1/auth/sessions/<str:session_id>", views.SessionView.as_view()),
    path("v1/auth/password", views.PasswordView.as_view()),
    path("v1/auth/email", views.EmailView.as_view()),
    path("v1/auth/email/change", views.EmailChangeView.as_view()),
    path("v1/auth/email/verify", views.EmailVerifyView.as_view()),
    path("v1/auth/email/resend", views.EmailResendView.as_view()),
    path("v1/auth/email/cancel", views.EmailCancelView.as_view()),
]

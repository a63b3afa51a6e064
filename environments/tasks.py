"""Background tasks of environments."""

from django.utils import timezone
from procrastinate import RetryStrategy
from procrastinate.contrib.django import app

from environments import environments


@app.periodic(cron="17 * * * *")
@app.task(queueing_lock="drop_expired_environments")
def drop_expired_environments(timestamp: int) -> None:
    """Queue one job for each environment whose retention is over."""
    for environment_pk in environments.expired(now=timezone.now()):
        drop_environment.configure(lock=f"environment:{environment_pk}").defer(
            environment_pk=environment_pk
        )


@app.task(retry=RetryStrategy(max_attempts=10, exponential_wait=4))
def drop_environment(environment_pk: int) -> None:
    """Drop one deleted environment permanently."""
    environments.drop(environment_pk)

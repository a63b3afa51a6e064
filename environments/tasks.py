"""Background tasks of environments."""

from django.utils import timezone
from procrastinate.contrib.django import app

from common.jobs import defer_once
from common.scoping import unscoped
from environments import environments


@app.periodic(cron="17 * * * *")
@app.task(queueing_lock="drop_expired_environments")
@unscoped("upkeep for every organization")
def drop_expired_environments(timestamp: int) -> None:
    """Queue one job for each environment whose retention is over."""
    for environment_pk in environments.expired(now=timezone.now()):
        # One at a time for each: those that failed while a server was away would become more with
        # every hour.
        name = f"environment:{environment_pk}"
        job = drop_environment.configure(lock=name, queueing_lock=name)
        defer_once(job, environment_pk=environment_pk)


@app.task
@unscoped("a job knows its row alone")
def drop_environment(environment_pk: int) -> None:
    """Drop one deleted environment permanently; after a failure the next hour's job tries again."""
    environments.drop(environment_pk)

"""Background tasks of the platform as a whole."""

from django.utils import timezone
from procrastinate.contrib.django import app

from common import jobs
from operations.doctor import key_ages
from platform_site.staff import activity


# A minute later, because processes write their SQL history shortly after the requests.
@app.periodic(cron="1-59/10 * * * *")
@app.task(queueing_lock="platform_roll_up_activity")
def roll_up_activity(timestamp: int) -> None:
    """Add the dashboard's samples."""
    activity.roll_up(now=timezone.now())


@app.periodic(cron="* * * * *")
@app.task(queueing_lock="platform_release_lost_jobs")
def release_lost_jobs(timestamp: int) -> None:
    """Release the jobs of killed workers, which others with the same lock wait for."""
    jobs.release_lost()


@app.periodic(cron="13 * * * *")
@app.task(queueing_lock="platform_record_keys")
def record_keys(timestamp: int) -> None:
    """Record new keys, so that their age is known."""
    key_ages.record()

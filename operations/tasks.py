"""Background tasks of the installation: lost jobs of the queue, and the age of keys."""

from procrastinate.contrib.django import app

from common import jobs
from common.scoping import unscoped
from operations.doctor import keys


@app.periodic(cron="* * * * *")
@app.task(queueing_lock="platform_release_lost_jobs")
def release_lost_jobs(timestamp: int) -> None:
    """Release the jobs of killed workers, which others with the same lock wait for."""
    jobs.release_lost()


@app.periodic(cron="13 * * * *")
@app.task(queueing_lock="platform_record_keys")
@unscoped("upkeep for every organization")
def record_keys(timestamp: int) -> None:
    """Record new keys, so that their age is known."""
    keys.record()

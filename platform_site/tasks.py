"""Background tasks of the dashboard."""

from django.utils import timezone
from procrastinate.contrib.django import app

from platform_site.staff import activity


# A minute later, because processes write their SQL history shortly after the requests.
@app.periodic(cron="1-59/10 * * * *")
@app.task(queueing_lock="platform_roll_up_activity")
def roll_up_activity(timestamp: int) -> None:
    """Add the dashboard's samples."""
    activity.roll_up(now=timezone.now())

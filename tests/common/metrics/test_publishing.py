"""Metrics that a process writes once a second."""

from typing import NoReturn

import pytest

from common.metrics import publishing


def test_publishing_goes_on_after_an_error(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    published: list[int] = []

    def publish() -> NoReturn:
        published.append(len(published))
        if len(published) == 1:
            raise RuntimeError
        # Ends the thread's loop.
        raise SystemExit

    monkeypatch.setattr(publishing, "EVERY_S", 0)
    monkeypatch.setattr(publishing, "publish", publish)
    with pytest.raises(SystemExit):
        publishing._publish_forever()
    assert published == [0, 1]
    assert "metrics_not_published" in caplog.text

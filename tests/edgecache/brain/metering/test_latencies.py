"""The latency histogram is accurate to 3 %, and merging is exact."""

from hypothesis import given
from hypothesis import strategies as st

from edgecache.brain.metering.latencies import MAX_LATENCY_US, Latencies, bucket_of, middle_of

DURATIONS = st.lists(st.floats(0, 3600, allow_nan=False), max_size=60)


def of(seconds: list[float]) -> Latencies:
    """Return a histogram of some durations."""
    made = Latencies()
    for each in seconds:
        made.add(each)
    return made


@given(st.integers(0, MAX_LATENCY_US))
def test_a_bucket_s_midpoint_is_within_three_percent(us: int) -> None:
    assert abs(middle_of(bucket_of(us)) - us) <= max(us * 0.03, 0.5)


@given(st.integers(0, MAX_LATENCY_US), st.integers(0, MAX_LATENCY_US))
def test_longer_durations_are_in_later_buckets(one: int, other: int) -> None:
    low, high = sorted((one, other))
    assert bucket_of(low) <= bucket_of(high)


@given(DURATIONS, DURATIONS)
def test_merged_histograms_equal_one_of_all_durations(one: list[float], other: list[float]) -> None:
    merged = Latencies.merged([of(one), of(other)])
    whole = of(one + other)

    assert merged.counts == whole.counts
    assert (merged.count, merged.total_us) == (whole.count, whole.total_us)


@given(DURATIONS)
def test_a_histogram_survives_json(seconds: list[float]) -> None:
    made = of(seconds)
    again = Latencies.from_json(made.as_json())

    assert (again.counts, again.count, again.total_us) == (made.counts, made.count, made.total_us)


def test_quantiles_match_those_of_the_sorted_list() -> None:
    made = of([each / 1000 for each in range(1, 1001)])

    assert abs(made.quantile_ms(0.95) - 950) < 30
    assert abs(made.quantile_ms(0.99) - 990) < 30
    assert abs(made.mean_ms() - 500.5) < 0.1


def test_an_empty_histogram_is_zero_everywhere() -> None:
    assert (Latencies().mean_ms(), Latencies().quantile_ms(0.99)) == (0.0, 0.0)


def test_a_negative_duration_counts_as_zero() -> None:
    assert of([-1.0]).quantile_ms(1.0) == 0.0

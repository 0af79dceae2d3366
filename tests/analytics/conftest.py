"""Hypothesis draws the same examples in every run, and few enough of them."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "analytics", derandomize=True, deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("analytics")

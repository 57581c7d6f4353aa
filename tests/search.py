"""How long hypothesis searches for what breaks a property; `HYPOTHESIS_PROFILE=soak` is longer."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "quick", max_examples=60, stateful_step_count=12, deadline=None, derandomize=True, database=None
)
settings.register_profile(
    "soak",
    max_examples=1000,
    stateful_step_count=60,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
SEARCH = settings.get_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

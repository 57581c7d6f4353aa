"""How long hypothesis searches for what breaks a property.

`HYPOTHESIS_PROFILE=soak` searches longer; `mutants` makes nothing it found shorter, since nobody
reads it.
"""

import os

from hypothesis import HealthCheck, Phase, settings

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
settings.register_profile(
    "mutants", settings.get_profile("quick"), phases=[Phase.explicit, Phase.generate]
)
SEARCH = settings.get_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

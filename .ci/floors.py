"""Print the lowest versions that pyproject.toml allows, as constraints for pip."""

import re
import tomllib
from pathlib import Path

project = tomllib.loads(Path(__file__).parents[1].joinpath("pyproject.toml").read_text("utf-8"))
project = project["project"]
for wanted in [*project["dependencies"], *project["optional-dependencies"]["dev"]]:
    print(re.sub(r"\[.*\]", "", wanted).replace(">=", "=="))

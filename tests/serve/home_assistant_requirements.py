"""Print what the integrations that the tests use require, as their manifests say.

    python home_assistant_requirements.py

Runs where the package homeassistant is. Home Assistant would install these when it starts.
"""

import json
from pathlib import Path

import homeassistant

COMPONENTS = Path(homeassistant.__path__[0]) / "components"
USED = ["automation", "assist_pipeline", "assist_satellite", "mqtt", "wyoming"]


def main() -> None:
    waiting, seen, found = list(USED), set(), set()
    while waiting:
        name = waiting.pop()
        manifest = COMPONENTS / name / "manifest.json"
        if name in seen or not manifest.exists():
            continue
        seen.add(name)
        content = json.loads(manifest.read_text())
        found |= set(content.get("requirements", []))
        waiting += content.get("dependencies", [])
    print("\n".join(sorted(found)))


if __name__ == "__main__":
    main()

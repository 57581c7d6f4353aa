"""Print the notes of a release from CHANGELOG.md: `release_notes.py v0.2.0`.

Fails unless the tag is the package's version and the changelog has the date of the release.
"""

import re
import sys
from pathlib import Path

root = Path(__file__).parents[1]
tag = sys.argv[1]
[version] = re.findall(
    r'__version__ = "(.+)"', (root / "src/tapword/version.py").read_text("utf-8")
)
if tag != f"v{version}":
    sys.exit(f"the tag is {tag}, the version in src/tapword/version.py {version}")
for section in (root / "CHANGELOG.md").read_text("utf-8").split("\n## ")[1:]:
    title, _, notes = section.partition("\n")
    if re.fullmatch(rf"{re.escape(version)} - \d{{4}}-\d\d-\d\d", title):
        print(notes.strip())
        break
else:
    sys.exit(f"CHANGELOG.md has no section '## {version} - YEAR-MONTH-DAY'")

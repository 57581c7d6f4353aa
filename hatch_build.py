"""The package's long description: README.md, with links to the files of this version."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

HOME = "https://github.com/tapword/tapword/blob/v{version}/"
PICTURES = "https://raw.githubusercontent.com/tapword/tapword/v{version}/"


class Readme(MetadataHookInterface):
    """Make relative links absolute: a page on PyPI has no files beside it."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the description."""
        text = Path(self.root, "README.md").read_text("utf-8")
        home, pictures = (one.format(version=metadata["version"]) for one in (HOME, PICTURES))
        text = re.sub(r"\]\((?!https?:|#)", f"]({home}", text)
        text = re.sub(r'src="(?!https?:)', f'src="{pictures}', text)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}

"""What the documentation tells people to write works as it stands."""

import re

import pytest

from tests import test_contracts
from tests.conftest import ROOT


@pytest.mark.parametrize("check", test_contracts.checks("pooling"))
def test_the_pooling_one_is_told_to_add_keeps_the_contract(check):
    text = (ROOT / "docs" / "adding_parts.md").read_text()
    [example] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names = {"__name__": "median"}
    exec(example, names)
    check(names["Median"])


def test_links_lead_somewhere():
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"

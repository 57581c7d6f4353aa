"""What errors tell people to type works where they are."""

import json
from importlib import metadata

import pytest

from tapword.errors import MissingExtra, how_to_install


@pytest.mark.parametrize(
    ("noted", "command"),
    [
        (None, "pip install 'tapword[web]'"),
        ({"url": "file:///src/tap%20word", "dir_info": {}}, "pip install '/src/tap word[web]'"),
        (
            {"url": "file:///src/tapword", "dir_info": {"editable": True}},
            "pip install -e '/src/tapword[web]'",
        ),
        (
            {"url": "file:///dist/tapword-1.0-py3-none-any.whl", "archive_info": {}},
            "pip install 'tapword[web] @ file:///dist/tapword-1.0-py3-none-any.whl'",
        ),
        (
            {"url": "https://host/tapword", "vcs_info": {"vcs": "git", "commit_id": "0"}},
            "pip install 'tapword[web] @ git+https://host/tapword'",
        ),
    ],
)
def test_an_extra_is_installed_from_where_tapword_came(monkeypatch, noted, command):
    class Installed:
        def read_text(self, name):
            assert name == "direct_url.json"
            return None if noted is None else json.dumps(noted)

    monkeypatch.setattr(metadata, "distribution", lambda name: Installed())
    assert how_to_install("web") == command
    assert str(MissingExtra("the studio", "starlette", "web")).endswith(command)


def test_without_a_note_of_its_installation(monkeypatch):
    def nothing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", nothing)
    assert how_to_install("mic") == "pip install 'tapword[mic]'"

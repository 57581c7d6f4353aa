"""The README's example runs as it stands, and its map is the disk."""

import re

import numpy as np
import soundfile

import tapword
from tapword import registry
from tests.conftest import ROOT, tone

README = (ROOT / "README.md").read_text()


def test_python_example(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    example, listening = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(example.strip().splitlines()) <= 12
    soundfile.write("lamp.wav", tone(300), 16_000)
    names = {
        "lamp_clips": ["lamp.wav", tone(310)],
        "music_clips": [tone(1000), tone(1050)],
        "new_clip": tone(305),
    }
    exec(example, names)
    assert capsys.readouterr().out.startswith("lamp {'lamp': ")
    assert tapword.load("home.tap").words == {"lamp": 2, "radio": 2}

    word = np.concatenate([np.zeros(8_000), np.hanning(16_000) * tone(305), np.zeros(12_000)])
    names["stream"] = np.split(word.astype(np.float32), 10)
    exec(listening, names)
    assert capsys.readouterr().out.startswith("lamp 0.")


def test_map_matches_the_disk():
    listed = set()
    for row in re.findall(r"^\| (`.*?) \|", README, re.MULTILINE):
        listed.update(re.findall(r"`([\w/.]+)`", row))
    source = ROOT / "src" / "tapword"
    for name in listed:
        assert (ROOT / name).exists() or (source / name).exists(), f"{name} is not on the disk"
    rooms = {path.name + "/" for path in source.iterdir() if path.is_dir()} - {"__pycache__/"}
    files = {path.name for path in source.glob("[!_]*.py")}
    missing = (rooms | files) - listed
    assert not missing, f"not in the README's map: {missing}"


def test_every_part_is_named():
    for room in registry.ROOMS:
        [row] = re.findall(rf"^\| `{room}/` \|.*$", README, re.MULTILINE)
        for name in registry.classes(room):
            assert f"`{name}`" in row, f"the README does not name {room[:-1]} {name}"

import json
import multiprocessing
import os
import threading

import numpy as np
import pytest
import safetensors.numpy

from tapword import Spotter
from tapword.backbones.transformers import Transformers
from tapword.errors import InputError, ModelFileError
from tapword.spotter import store
from tapword.spotter.model_header import is_stored
from tests import hostile
from tests.conftest import tone

PARTS = {"backbone": "logmel", "pooling": "avg", "learner": "slda"}


@pytest.fixture
def path(tmp_path):
    spotter = Spotter(**PARTS)
    spotter.learn(tone(300), "low")
    spotter.learn(tone(900), "high")
    spotter.save(tmp_path / "model.tap")
    return tmp_path / "model.tap"


def rewrite(path, **changes):
    """Write the file again by hand, arrays or its header changed."""
    model = store.read(path)
    changed = {name: changes.pop(name) for name in list(changes) if name in model.arrays}
    path.write_bytes(hostile.forged(model, model.arrays | changed, **changes))


def test_round_trip_goes_on_identically(path):
    loaded = Spotter.load(path)
    fresh = Spotter(**PARTS)
    fresh.learn(tone(300), "low")
    fresh.learn(tone(900), "high")
    for spotter in (loaded, fresh):
        spotter.learn(tone(500), "mid")
    assert loaded.words == fresh.words == {"low": 1, "high": 1, "mid": 1}
    assert loaded.predict(tone(510)) == fresh.predict(tone(510))


def test_header_says_what_the_file_is(path):
    header = store.read(path).header
    assert header["format"] == 2 and header["generation"] == 1
    assert header["words"] == {"low": 1, "high": 1}
    assert header["backbones"] == [
        {"name": "logmel", "arguments": {"pad_s": 0.0}, "weights_sha256": ""}
    ]
    assert header["poolings"] == [{"name": "avg", "arguments": {}}]
    assert header["learner"]["arguments"]["eps"] == 1e-4


def test_an_untaught_spotter_saves_and_loads(tmp_path):
    Spotter(**PARTS).save(tmp_path / "empty.tap")
    assert Spotter.load(tmp_path / "empty.tap").words == {}


def test_saving_never_overwrites_what_it_has_not_seen(path):
    first, second = Spotter.load(path), Spotter.load(path)
    first.learn(tone(500), "mid")
    first.save(path)
    second.learn(tone(700), "other")
    with pytest.raises(ModelFileError, match="was changed since this spotter was loaded"):
        second.save(path)
    assert "mid" in Spotter.load(path).words
    first.learn(tone(510), "mid")
    first.save(path)
    assert Spotter.load(path).words["mid"] == 2
    with pytest.raises(ModelFileError, match="is another model"):
        Spotter(**PARTS).save(path)
    Spotter(**PARTS).save(path, overwrite=True)
    assert Spotter.load(path).words == {}


def test_saving_refuses_to_replace_a_foreign_file(tmp_path):
    path = tmp_path / "letter.txt"
    path.write_text("dear diary")
    with pytest.raises(ModelFileError, match="is not a tapword model"):
        Spotter(**PARTS).save(path)
    assert path.read_text() == "dear diary"


def test_edit_leaves_the_file_as_it_was_on_an_error(path):
    before = path.read_bytes()
    with pytest.raises(InputError), Spotter.edit(path) as spotter:
        spotter.learn(tone(500), "mid")
        spotter.forget("never taught")
    assert path.read_bytes() == before
    assert not [
        name
        for name in os.listdir(path.parent)
        if name.startswith(".model.tap.") and not name.endswith(".lock")
    ]


def _teach(path, word, times):
    for _ in range(times):
        with Spotter.edit(path, **PARTS) as spotter:
            spotter.learn(tone(400), word)


def test_writers_at_once_lose_nothing(tmp_path):
    path = tmp_path / "shared.tap"
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_teach, args=(path, f"p{i}", 5)) for i in range(3)]
    threads = [threading.Thread(target=_teach, args=(path, f"t{i}", 5)) for i in range(3)]
    for worker in processes + threads:
        worker.start()
    for worker in processes + threads:
        worker.join()
    expected = {f"{kind}{i}": 5 for kind in "pt" for i in range(3)}
    assert Spotter.load(path).words == expected
    assert store.read(path).header["generation"] == 30


def test_a_held_lock_is_said(path):
    with (
        store.locked(path),
        pytest.raises(ModelFileError, match="locked by another program"),
        store.locked(path, timeout_s=0.1),
    ):
        pass


def test_every_cut_and_most_flips_are_noticed(path, rng):
    content = path.read_bytes()
    for length in rng.integers(0, len(content), 40):
        path.write_bytes(content[:length])
        with pytest.raises(ModelFileError):
            Spotter.load(path)
    start = 8 + int.from_bytes(content[:8], "little")
    for position in rng.integers(start, len(content), 40):
        damaged = bytearray(content)
        damaged[position] ^= 0x10
        path.write_bytes(damaged)
        with pytest.raises(ModelFileError, match="checksum"):
            Spotter.load(path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": 99, "version": "9.9"}, "written by tapword '9.9' in format 99.*upgrade"),
        ({"format": "x"}, "no format number"),
        ({"words": ["low"]}, "no list of words"),
        ({"words": {"low": 1}}, "should be float32 of shape"),
        ({"words": {"low": -1, "high": 2}}, "no list of words"),
        ({"negatives": {"other": 1}}, "negatives are not of its words"),
        ({"negatives": {"low": 1}}, "'means' should be"),
        ({"negatives": {"low": 1}, "rows": [["low", True]]}, "rows of the state are not those"),
        ({"rows": [["low", False], ["low", False]]}, "rows of the state are not those"),
        ({"rows": [["low"], 3]}, "negatives are not of its words"),
        ({"learner": {"name": "oracle", "arguments": {}}}, "no learner named 'oracle'"),
        ({"learner": {"name": "slda", "arguments": {"code": "rm"}}}, "no argument 'code'"),
        ({"poolings": None}, "names parts that cannot be made"),
        ({"backbones": []}, r"\[\] should be 1 to 16 names with arguments"),
        ({"means": np.zeros((2, 31), np.float32)}, "should be float32 of shape"),
        ({"means": np.full((2, 32), np.nan, np.float32)}, "contains NaN"),
        ({"scatter": np.zeros(527, np.float32)}, "'scatter' should be"),
        ({"counts": np.zeros(2, np.float32)}, "'counts' should be int64"),
        (
            {
                "backbones": [
                    {"name": "logmel", "arguments": {"pad_s": 0.0}, "weights_sha256": "ab" * 32}
                ]
            },
            "taught with weights abababababab",
        ),
    ],
)
def test_wrong_files_say_what_is_wrong(path, changes, message):
    rewrite(path, **changes)
    with pytest.raises(ModelFileError, match=message):
        Spotter.load(path)


def test_foreign_files_are_refused(tmp_path):
    other = tmp_path / "other.safetensors"
    other.write_bytes(safetensors.numpy.save({"weight": np.zeros(3, np.float32)}))
    with pytest.raises(ModelFileError, match="safetensors file, but not a tapword model"):
        Spotter.load(other)
    huge = json.dumps(
        {"x": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}}
    ).encode()
    other.write_bytes(len(huge).to_bytes(8, "little") + huge)
    with pytest.raises(ModelFileError, match="cut short or damaged"):
        Spotter.load(other)
    other.write_bytes(b"")
    with pytest.raises(ModelFileError, match=r"is empty \(0 bytes\); use a backup"):
        Spotter.load(other)
    with pytest.raises(ModelFileError, match="does not exist"):
        Spotter.load(tmp_path / "gone.tap")
    with pytest.raises(ModelFileError, match="is a folder"):
        Spotter.load(tmp_path)


def test_a_missing_folder_is_said(tmp_path):
    with pytest.raises(ModelFileError, match="does not exist"):
        Spotter(**PARTS).save(tmp_path / "no" / "model.tap")


def test_links_and_permissions_survive(path):
    link = path.with_name("link.tap")
    link.symlink_to(path)
    os.chmod(path, 0o640)
    with Spotter.edit(link) as spotter:
        spotter.learn(tone(500), "mid")
    assert link.is_symlink() and "mid" in Spotter.load(path).words
    assert path.stat().st_mode & 0o777 == 0o640


def test_machine_arguments_stay_out_of_the_file(tmp_path):
    Spotter(backbone="speech_embedding:threads=2").save(tmp_path / "model.tap")
    [stored] = store.read(tmp_path / "model.tap").header["backbones"]
    assert stored["arguments"] == {"layers": "emb"}
    assert len(stored["weights_sha256"]) == 64


def test_backbones_at_hand_must_be_those_of_the_model(path):
    assert Spotter.load(path, backbones=["logmel"]).words == {"low": 1, "high": 1}
    for others in (["logmel:pad_s=0.5"], ["logmel", "logmel"], ["speech_embedding"]):
        with pytest.raises(ModelFileError, match="taught with another backbone: logmel"):
            Spotter.load(path, backbones=others)


def test_an_argument_that_was_added_since_has_its_default(path):
    """And where a backbone runs does not matter, though old files say it."""
    rewrite(path, backbones=[{"name": "logmel", "arguments": {}, "weights_sha256": ""}])
    assert Spotter.load(path).words == {"low": 1, "high": 1}
    header = {"name": "transformers", "arguments": {"model": "someone/model", "layer": None}}
    assert is_stored(header, Transformers(model="/elsewhere", device="cpu"))
    assert not is_stored(header, Transformers(model="/elsewhere", layer=3))


def test_edit_refuses_a_file_of_other_parts(path):
    with Spotter.edit(path, **PARTS) as spotter:
        assert spotter.words == {"low": 1, "high": 1}
    before = path.read_bytes()
    with (
        pytest.raises(InputError, match="different poolings: avg and max"),
        Spotter.edit(path, **PARTS | {"pooling": "max"}),
    ):
        pass
    assert path.read_bytes() == before

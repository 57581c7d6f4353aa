"""A model file that others change: what is in use stays until a whole new file is there."""

import os
import shutil
from pathlib import Path

import pytest

import tapword
from tapword.backbones.speech_embedding import weights_path
from tapword.errors import ModelFileError
from tapword.spotter import store
from tapword.spotter.watched import WatchedModel
from tests import hostile
from tests.conftest import tone

PARTS = {"backbone": "logmel", "pooling": "avg", "learner": "ncm"}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "home.tap"


def teach(path, word, **parts):
    with tapword.Spotter.edit(path, **parts) as spotter:
        spotter.learn(tone(300), word)


def test_a_file_that_appears_and_changes(path):
    watched = WatchedModel(path, PARTS)
    assert watched.spotter.words == {} and watched.revision is watched.problem is None
    assert not watched.refresh()
    for count in (1, 2):
        before = watched.spotter
        teach(path, "lamp", **PARTS)
        assert watched.refresh() and watched.spotter.words == {"lamp": count}
        assert watched.spotter is not before
        assert not watched.refresh()


def test_a_file_that_vanishes_leaves_its_words(path):
    teach(path, "lamp", **PARTS)
    watched = WatchedModel(path)
    content = path.read_bytes()
    path.unlink()
    assert watched.refresh() and "is gone; its words stay" in watched.problem
    assert watched.spotter.words == {"lamp": 1} and not watched.refresh()
    path.write_bytes(content)
    assert watched.refresh() and watched.problem is None and watched.spotter.words == {"lamp": 1}


def test_an_edit_after_the_file_vanished_keeps_the_words(path):
    teach(path, "lamp", **PARTS)
    watched = WatchedModel(path)
    path.unlink()
    before = watched.spotter
    with watched.edit() as spotter:
        spotter.learn(tone(900), "music")
    assert watched.spotter.words == tapword.load(path).words == {"lamp": 1, "music": 1}
    assert watched.problem is None and before.words == {"lamp": 1}


def test_an_edit_that_fails_changes_nothing(path):
    watched = WatchedModel(path, PARTS)
    with pytest.raises(ZeroDivisionError), watched.edit() as spotter:
        spotter.learn(tone(900), "music")
        raise ZeroDivisionError
    assert watched.spotter.words == {} and not path.exists()


def test_a_half_copied_file_is_waited_for(path, tmp_path):
    teach(path, "lamp", **PARTS)
    watched = WatchedModel(path)
    shutil.copy(path, tmp_path / "other.tap")
    teach(tmp_path / "other.tap", "music")
    content = (tmp_path / "other.tap").read_bytes()
    with open(path, "wb") as file:
        for part in (content[:10], content[10:500], content[500:-1]):
            file.write(part)
            file.flush()
            assert not watched.refresh() and watched.problem is None
            assert watched.spotter.words == {"lamp": 1}
        file.write(content[-1:])
    assert watched.refresh() and watched.spotter.words == {"lamp": 1, "music": 1}


def test_a_file_that_stays_broken_is_told_of(path):
    teach(path, "lamp", **PARTS)
    watched = WatchedModel(path)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    assert not watched.refresh()
    assert watched.refresh() and "the words from before stay in use" in watched.problem
    assert watched.spotter.words == {"lamp": 1} and not watched.refresh()
    with pytest.raises(ModelFileError), watched.edit():
        pass
    path.write_bytes(content)
    assert watched.refresh() and watched.problem is None


def test_whatever_a_bad_file_raises_the_watching_goes_on(path, monkeypatch):
    teach(path, "lamp", **PARTS)
    watched = WatchedModel(path)
    good, model = path.read_bytes(), store.read(path)
    path.write_bytes(hostile.forged(model, sensitivities={"lamp": 10**400}))
    assert not watched.refresh() and watched.refresh()
    assert "must be from 0 to 1" in watched.problem and watched.spotter.words == {"lamp": 1}
    path.write_bytes(good)
    assert watched.refresh() and watched.problem is None

    def fail(*arguments):
        raise OverflowError("int too large to convert to float")

    with monkeypatch.context() as patch:
        patch.setattr(store, "revision", fail)
        teach(path, "music")
        assert not watched.refresh() and watched.refresh()
        assert "OverflowError('int too large" in watched.problem
    path.touch()
    assert watched.refresh() and watched.problem is None and "music" in watched.spotter.words


def test_backbones_that_were_given_are_used_for_every_file(path, tmp_path):
    weights = Path(shutil.copy(weights_path(None), tmp_path / "here.onnx"))
    given = [f"speech_embedding:weights={weights}"]
    teach(path, "lamp", backbone="speech_embedding", pooling="avg", learner="ncm")
    watched = WatchedModel(path, backbones=given)
    assert watched.spotter.encoder.backbones[0].weights == str(weights)
    teach(path, "music")
    assert watched.refresh() and watched.spotter.encoder.backbones[0].weights == str(weights)


def test_a_file_nobody_may_read_any_more_and_again(path):
    teach(path, "lamp", **PARTS)
    watched = WatchedModel(path)
    if os.name == "nt" or os.geteuid() == 0:
        pytest.skip("this user may read every file")
    path.chmod(0)
    assert not watched.refresh() and watched.refresh() and "ermission" in watched.problem
    assert watched.spotter.words == {"lamp": 1}
    path.chmod(0o600)
    assert watched.refresh() and watched.problem is None


def test_size_and_time_alone_do_not_tell_a_file_from_another(path):
    """As for a change of permissions, which leaves both: the file is looked at again."""
    teach(path, "lamp", **PARTS)
    watched = WatchedModel(path)
    seen, content = path.stat(), path.read_bytes()
    for written, broken in ((bytes(len(content)), True), (content, False)):
        path.write_bytes(written)
        os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))
        path.chmod(0o600 if broken else 0o644)
        assert watched.refresh() or watched.refresh()
        assert (watched.problem is not None) == broken
    assert watched.spotter.words == {"lamp": 1}


def test_a_model_of_other_backbones_takes_its_place(path, tmp_path):
    teach(path, "lamp", **PARTS)
    watched = WatchedModel(path)
    teach(tmp_path / "other.tap", "music", **PARTS | {"backbone": "logmel:pad_s=0.1"})
    os.replace(tmp_path / "other.tap", path)
    # Taught at once, before anybody looked.
    with watched.edit() as spotter:
        spotter.learn(tone(900), "radio")
    assert watched.spotter.words == {"music": 1, "radio": 1}
    assert watched.spotter.encoder.backbones[0].pad_s == 0.1


def test_two_who_watch_see_what_each_of_them_changes(path):
    one, two = WatchedModel(path, PARTS), WatchedModel(path, PARTS)
    for watched, word in ((one, "lamp"), (two, "music"), (one, "radio")):
        with watched.edit() as spotter:
            spotter.learn(tone(300), word)
    assert two.refresh() and one.spotter.words == two.spotter.words
    assert list(one.spotter.words) == ["lamp", "music", "radio"] and one.revision == two.revision


def test_a_file_that_is_no_model_is_refused_at_first(path):
    path.write_text("nonsense")
    with pytest.raises(ModelFileError, match="not a tapword model"):
        WatchedModel(path)

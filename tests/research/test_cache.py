import json
import os
import threading
from pathlib import Path

import numpy as np
import pytest
import soundfile
import threadpoolctl

from tapword import Spotter, registry
from tapword.audio.align import align, fill
from tapword.backbones.logmel import Logmel
from tapword.errors import InputError
from tapword.research.cache import Cache, cache_key, encode_shard, store
from tapword.spotter.encoder import PLAIN, Preparation
from tests.conftest import extract, tone

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture
def dataset(tmp_path):
    """Two words of 12 clips, one of them broken."""
    root = tmp_path / "data"
    for word, pitch in [("low", 300), ("high", 1200)]:
        (root / word).mkdir(parents=True)
        for take in range(12):
            path = root / word / f"{take:02d}.wav"
            soundfile.write(path, tone(pitch * (1 + 0.02 * take), 0.3 + 0.1 * (take % 3)), 16_000)
    (root / "low" / "00.wav").write_text("broken")
    return registry.build("datasets", "folder:test_share=0.25", root=str(root))


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path / "cache", shard=5)


@pytest.fixture
def parts():
    backbone = registry.build("backbones", "logmel")
    return backbone, [registry.build("poolings", name) for name in ("avg", "tap:R=2", "flat")]


def count_calls(backbone, monkeypatch):
    """Count the clips that pass the backbone from now on."""
    seen = []
    frames_many = type(backbone).frames_many

    def counting(self, audios):
        seen.extend(audios)
        return frames_many(self, audios)

    monkeypatch.setattr(type(backbone), "frames_many", counting)
    return seen


class Fixed:
    """A data set of which a cache's key asks nothing else."""

    def fingerprint(self):
        return "0" * 64


def test_caches_of_before_still_load(parts):
    backbone, poolings = parts
    keys = json.loads((GOLDEN / "expected.json").read_text())["cache_keys"]
    for name, key in keys.items():
        split, flags = name.split()
        preparation = Preparation(align=flags[0] == "1", augment=flags[1] == "1")
        found = cache_key(Fixed(), split, backbone, poolings[1], preparation)
        # Aligned clips were of one second each; now they are as long as what is said.
        assert (found == key) is not preparation.align
    encoded, kept = Cache(GOLDEN / "cache").get(keys["test 00"], 0)
    np.testing.assert_array_equal(encoded.vectors, np.arange(6, dtype=np.float32).reshape(2, 3))
    assert encoded.vectors.dtype == np.float32 and kept.tolist() == [0, 2]
    assert encoded.seconds.tolist() == [1, 1]


def test_seconds_of_aligned_clips_are_kept(tmp_path, parts):
    rng = np.random.default_rng(0)
    for word, seconds in (("short", 0.5), ("long", 1.8)):
        for split in ("train", "test"):
            path = tmp_path / split / word / "0.wav"
            path.parent.mkdir(parents=True)
            soundfile.write(path, 0.3 * rng.standard_normal(round(seconds * 16000)), 16000)
    backbone, poolings = parts
    dataset = registry.build("datasets", "folder", root=str(tmp_path))
    preparation, cache = Preparation(align=True), Cache(tmp_path / "cache")
    for _ in range(2):
        [found] = extract(dataset, "test", backbone, poolings[1:2], cache, preparation=preparation)
        spotter = Spotter(backbone, poolings[1], "ncm", align=True)
        wanted = spotter.encode([clip.path for clip in dataset.clips("test")])
        np.testing.assert_allclose(found.encoded.vectors, wanted.vectors, rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(found.encoded.seconds, wanted.seconds)
    assert found.words == ["long", "short"] and found.encoded.seconds[0] > 1.7


def test_a_revised_pooling_is_computed_anew(monkeypatch):
    def keys():
        specs = "avg", "stochastic", "blocks:poolings=stochastic"
        made = [registry.build("poolings", spec) for spec in specs]
        return [cache_key(Fixed(), "train", Logmel(), one) for one in made]

    before = keys()
    assert keys() == before
    monkeypatch.setattr(registry.classes("poolings")["stochastic"], "revision", 2)
    assert [old == new for old, new in zip(before, keys(), strict=True)] == [True, False, False]


def test_vectors_words_and_broken_clips(dataset, cache, parts):
    backbone, poolings = parts
    train = extract(dataset, "train", backbone, poolings, cache, jobs=2)
    test = extract(dataset, "test", backbone, poolings, cache, jobs=2)
    assert len(train[0].words) + len(test[0].words) == 23
    assert train[0].skipped + test[0].skipped == 1
    assert [part.encoded.vectors.shape[1] for part in train] == [32, 64, 98 * 32]
    good = [clip for clip in dataset.clips("train") if "broken" not in clip.path.read_text("latin")]
    assert train[1].words == [clip.word for clip in good]
    for vector, clip in zip(train[1].encoded.vectors, good, strict=True):
        sound = fill(dataset.read(clip), 1.0)
        np.testing.assert_allclose(vector, poolings[1].pool(backbone.frames(sound)[0]), rtol=1e-4)


def test_aligned_clips_have_vectors_of_their_own(dataset, cache, parts):
    backbone, poolings = parts
    plain = extract(dataset, "train", backbone, poolings[1:2], cache)[0]
    aligned = extract(
        dataset, "train", backbone, poolings[1:2], cache, preparation=Preparation(align=True)
    )[0]
    again = extract(dataset, "train", backbone, poolings[1:2], cache)[0]
    np.testing.assert_array_equal(again.encoded.vectors, plain.encoded.vectors)
    assert aligned.words == plain.words and not np.allclose(
        aligned.encoded.vectors, plain.encoded.vectors
    )
    good = [clip for clip in dataset.clips("train") if "broken" not in clip.path.read_text("latin")]
    for vector, clip in zip(aligned.encoded.vectors, good, strict=True):
        sound = align(dataset.read(clip), 1.0)
        np.testing.assert_allclose(vector, poolings[1].pool(backbone.frames(sound)[0]), rtol=1e-4)


def test_clips_to_learn_from_are_augmented_and_others_are_not(dataset, cache, parts):
    backbone, poolings = parts
    for split in ("train", "test"):
        plain, augmented = (
            extract(
                dataset, split, backbone, poolings[1:2], cache, preparation=Preparation(augment=on)
            )[0]
            for on in (False, True)
        )
        assert np.allclose(plain.encoded.vectors, augmented.encoded.vectors) == (split == "test")
    good = [clip for clip in dataset.clips("train") if "broken" not in clip.path.read_text("latin")]
    augmented = extract(
        dataset, "train", backbone, poolings[1:2], cache, preparation=Preparation(augment=True)
    )
    spotter = Spotter(backbone, poolings[1], "ncm", augment=True)
    wanted = spotter.encode([clip.path for clip in good], learning=True)
    np.testing.assert_allclose(augmented[0].encoded.vectors, wanted.vectors, rtol=1e-4, atol=1e-5)


def test_strict_raises_on_a_broken_clip(dataset, cache, parts):
    backbone, poolings = parts
    with pytest.raises(InputError, match=r"00\.wav"):
        for split in ("train", "test"):
            extract(dataset, split, backbone, poolings, cache, strict=True)


def test_the_backbone_runs_once_for_all_poolings_and_never_again(
    dataset, cache, parts, monkeypatch
):
    backbone, poolings = parts
    seen = count_calls(backbone, monkeypatch)
    first = extract(dataset, "train", backbone, poolings[:2], cache)
    n = len(first[0].words)
    assert len(seen) == n
    again = extract(dataset, "train", backbone, poolings[:2], cache)
    assert len(seen) == n
    np.testing.assert_array_equal(first[1].encoded.vectors, again[1].encoded.vectors)
    extract(dataset, "train", registry.build("backbones", "logmel:pad_s=0.1"), poolings[:1], cache)
    assert len(seen) == 2 * n, "another backbone has vectors of its own"
    path = dataset.clips("train")[3].path
    os.utime(path, ns=(1, 1))
    fresh = registry.build("datasets", dataset.spec)
    extract(fresh, "train", backbone, poolings[:1], cache)
    assert len(seen) > 2 * n, "changed data has vectors of its own"


def test_an_interrupted_run_goes_on_where_it_stopped(dataset, cache, parts, monkeypatch):
    backbone, poolings = parts
    seen = count_calls(backbone, monkeypatch)

    def stop(done, total):
        if done >= 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        extract(dataset, "train", backbone, poolings[:2], cache, progress=stop)
    before = len(seen)
    whole = extract(dataset, "train", backbone, poolings[:2], cache)
    assert before >= 9 and len(seen) == len(whole[0].words), "no clip went through twice"


def test_the_cache_is_bounded(dataset, cache, parts):
    backbone, poolings = parts
    extract(dataset, "train", backbone, poolings, cache)
    assert cache.bytes() > 100_000
    cache.max_gb = 1e-5
    extract(dataset, "train", backbone, poolings[:1], cache)
    assert 0 < cache.bytes() < 15_000, "only what is in use stays"
    [folder] = cache.folder.iterdir()
    # A run that was killed while it wrote leaves such files.
    for name in (".000001.npz.0a1b2c3d.new", "tmpabc.tmp"):
        (folder / name).touch()
    assert cache.clear() > 0 and not folder.exists()


@pytest.mark.parametrize("damage", [b"garbage", b"", None])
def test_damaged_vectors_are_made_anew(dataset, cache, parts, damage):
    backbone, poolings = parts
    whole = extract(dataset, "train", backbone, poolings[:1], cache)
    shard = next(cache.folder.glob("*/*.npz"))
    shard.write_bytes(shard.read_bytes()[:300] if damage is None else damage)
    again = extract(dataset, "train", backbone, poolings[:1], cache)
    np.testing.assert_array_equal(again[0].encoded.vectors, whole[0].encoded.vectors)


def test_strict_looks_again_at_what_was_skipped(dataset, cache, parts):
    backbone, poolings = parts
    for split in ("train", "test"):
        extract(dataset, split, backbone, poolings[:1], cache)
    with pytest.raises(InputError, match=r"00\.wav"):
        for split in ("train", "test"):
            extract(dataset, split, backbone, poolings[:1], cache, strict=True)


def test_what_is_not_ours_stays(dataset, parts, tmp_path):
    """Somebody may name a folder of their own as cache."""
    photos, lookalike = tmp_path / "photos", tmp_path / ("ab" * 16)
    for folder in (photos, lookalike):
        folder.mkdir()
        (folder / "holiday.jpg").write_bytes(b"x" * 10_000)
    cache = Cache(tmp_path, max_gb=1e-9)
    backbone, poolings = parts
    extract(dataset, "train", backbone, poolings[:1], cache)
    extract(dataset, "train", backbone, poolings[1:2], cache)
    cache.clear()
    assert (photos / "holiday.jpg").exists() and (lookalike / "holiday.jpg").exists()
    assert tmp_path.is_dir() and cache.bytes() == 0


def test_a_folder_that_cannot_be_written_is_said(dataset, parts, tmp_path):
    (tmp_path / "file").touch()
    backbone, poolings = parts
    with pytest.raises(InputError, match="give another folder with --cache"):
        extract(dataset, "train", backbone, poolings[:1], Cache(tmp_path / "file"))


def test_two_runs_at_once_share_a_cache(dataset, cache, parts):
    backbone, poolings = parts
    results = []

    def work():
        results.append(extract(dataset, "train", backbone, poolings, cache, jobs=2))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 3
    for result in results[1:]:
        np.testing.assert_array_equal(result[1].encoded.vectors, results[0][1].encoded.vectors)


def test_a_run_that_ends_leaves_another_with_one_blas_thread(dataset, tmp_path, parts):
    """Else the last bits of a shard depend on when the other run ended."""
    backbone, poolings = parts
    inside, first_is_done = threading.Event(), threading.Event()
    seen = []

    def encode(clips, wanted):
        inside.set()
        assert first_is_done.wait(30)
        seen.extend(
            library["num_threads"]
            for library in threadpoolctl.threadpool_info()
            if library["user_api"] == "blas"
        )
        return encode_shard(dataset, clips, backbone, poolings, False, False, PLAIN)

    def work():
        store(dataset, "train", backbone, poolings, Cache(tmp_path / "second"), encode=encode)

    def encode_first(clips, wanted):
        second.start()
        assert inside.wait(30)
        return encode_shard(dataset, clips, backbone, poolings, False, False, PLAIN)

    second = threading.Thread(target=work)
    with threadpoolctl.threadpool_limits(2, "blas"):
        cache = Cache(tmp_path / "first")
        store(dataset, "train", backbone, poolings, cache, encode=encode_first)
        first_is_done.set()
        second.join()
    assert seen and set(seen) == {1}

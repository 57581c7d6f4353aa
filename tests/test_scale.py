"""The Ray engine on a real cluster of two worker processes, beside one machine's results."""

import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import tapword
from tapword import features, modelfile, registry, scale, workers
from tapword.demo import CLIPS
from tapword.errors import InputError, MissingExtra, TapwordError
from tapword.priors.prior import Prior, group_lengths, side
from tapword.spotter import Spotter

pytestmark = [
    # Two clusters at once would fight for the same cores.
    pytest.mark.xdist_group("ray"),
    # Ray leaves sockets and processes of its own to the system when it stops.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
WORDS = ("lamp", "music", "oven", "stop", "timer", "window")
PARTS = ("speech_embedding", "tap:R=2")
FAST = ["--backbone", "logmel", "--pooling", "tap:R=2"]


@pytest.fixture(scope="module")
def cluster():
    ray = pytest.importorskip("ray", reason="needs ray: pip install 'tapword[ray]'")
    with scale.cluster(cpus=2) as made:
        yield made
    assert not ray.is_initialized(), "a cluster of our own is stopped at the end"


@pytest.fixture(autouse=True)
def small_tasks(monkeypatch):
    monkeypatch.setattr(scale, "FEWEST", 32)
    monkeypatch.setattr(scale, "FAN", 2)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Six words of 28 clips, one of them broken."""
    for word in WORDS:
        shutil.copytree(CLIPS / word, tmp_path / "clips" / word)
    sorted((tmp_path / "clips" / "oven").iterdir())[3].write_text("broken")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "clips"


@pytest.fixture(scope="module")
def taught():
    """Clips, and a function that makes a spotter with any learner taught them on one machine."""
    clips = demo_clips()[:192]
    listener = Spotter(*PARTS, align=True)
    paths = [path for path, _ in clips]
    batches = range(0, len(clips), workers.BATCH)
    vectors = [listener.vectors(paths[i : i + workers.BATCH], learning=True) for i in batches]

    def teach(learner):
        spotter = Spotter(*PARTS, learner, align=True)
        spotter.learn_vectors(np.concatenate(vectors), [word for _, word in clips])
        return spotter

    return clips, teach


def demo_clips():
    return [(path, path.parent.name) for path in sorted(CLIPS.glob("*/*.ogg"))]


def taught_here(spotter, clips):
    for start in range(0, len(clips), workers.BATCH):
        paths, words = zip(*clips[start : start + workers.BATCH], strict=True)
        spotter.learn_many(paths, words)
    return spotter


def taught_there(cluster, spotter, clips, **options):
    with cluster.listen(spotter, clips, **options) as lesson:
        lesson.teach(spotter)
    return spotter


def assert_same(one, other):
    assert list(one.words.items()) == list(other.words.items()), "counts, and the order of words"
    state = other.learner.state()
    for name, array in one.learner.state().items():
        tolerance = 1e-6 * np.abs(array).max()
        np.testing.assert_allclose(state[name], array, rtol=1e-5, atol=tolerance, err_msg=name)


def test_statistics_and_labels_are_those_of_one_machine(cluster, taught):
    clips, teach = taught
    here = teach("ridge")
    there = taught_there(cluster, Spotter(*PARTS, "ridge", align=True), clips)
    assert_same(here, there)
    vectors = here.vectors([path for path, _ in clips[::5]])
    answers = here.predict_vectors(vectors)
    assert [a.word for a in there.predict_vectors(vectors)] == [a.word for a in answers]


@pytest.mark.parametrize("learner", ["perceptron", "cbcl", "snb", "sqda"])
def test_learners_of_every_kind(cluster, learner):
    clips = demo_clips()[:200]
    parts = ("logmel", "avg", learner)
    assert_same(
        taught_here(Spotter(*parts), clips), taught_there(cluster, Spotter(*parts), iter(clips))
    )


@pytest.mark.parametrize("learner", ["ncm", "perceptron"])
def test_alignment_and_a_prior_reach_the_workers(cluster, learner):
    clips = demo_clips()[:100]
    raw = Spotter("logmel", "avg", align=True)
    vectors = raw.vectors([path for path, _ in clips])
    [backbone], [pooling] = raw.backbones, raw.poolings
    about = side(backbone, pooling, align=True) | {"source": "the clips themselves"}
    groups = group_lengths(backbone, pooling)
    prior = Prior.fit(vectors, [word for _, word in clips], groups, about)
    here, there, plain = (
        Spotter("logmel", "avg", learner, align=True, prior=chosen)
        for chosen in ([prior], [prior], None)
    )
    assert_same(taught_here(here, clips), taught_there(cluster, there, clips))
    with pytest.raises(AssertionError):
        assert_same(taught_here(plain, clips), there)


def busy_workers(task):
    """Processes of our own cluster that are at `task` now."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, command = int(status.parent.name), (status.parent / "cmdline").read_bytes()
            parent = pid
            while parent > 1 and parent != os.getpid():
                parent = int(Path(f"/proc/{parent}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == os.getpid() and command.startswith(f"ray::{task}".encode()):
            found.append(pid)
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
@pytest.mark.parametrize("learner", ["ridge", "perceptron"])
def test_a_killed_worker_loses_nothing_and_counts_nothing_twice(cluster, taught, learner):
    clips, teach = taught
    spotter = Spotter(*PARTS, learner, align=True)
    killed = []

    def kill(done):
        if len(killed) < 2:
            for pid in busy_workers("learn" if spotter.learner.mergeable else "listen"):
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

    taught_there(cluster, spotter, clips, progress=kill)
    assert killed
    assert_same(teach(learner), spotter)


def test_clips_are_walked_as_workers_get_free(cluster, monkeypatch):
    monkeypatch.setattr(scale, "AHEAD", 1)
    walked, ahead = [], []

    def walk():
        for clip in demo_clips():
            walked.append(clip)
            yield clip

    spotter = Spotter("logmel", "avg", "ncm")
    taught_there(cluster, spotter, walk(), progress=lambda done: ahead.append(len(walked) - done))
    assert sum(spotter.words.values()) == len(walked)
    assert max(ahead) <= 2 * scale.FEWEST


def test_a_process_makes_its_parts_once_and_uses_one_core(cluster):
    import ray

    parcel = workers.pack(backbones=[registry.build("backbones", "speech_embedding:threads=4")])

    def look(_):
        import threadpoolctl

        backbone = workers.settle(parcel)["backbones"][0]
        threads = {pool["num_threads"] for pool in threadpoolctl.threadpool_info()}
        return os.getpid(), id(backbone), backbone.threads, max(threads)

    seen = ray.get([ray.remote(look).remote(number) for number in range(20)])
    assert len({(pid, made) for pid, made, _, _ in seen}) == len({pid for pid, *_ in seen}) <= 2
    assert {one[2:] for one in seen} == {(1, 1)}


def test_learn_folder_says_the_same_of_a_broken_clip(cluster, folder, run):
    asked = {engine: ["clips", "--engine", engine, *FAST] for engine in ("local", "ray")}
    stopped = {engine: run("learn-folder", "no.tap", *asked[engine]) for engine in asked}
    assert stopped["ray"] == stopped["local"]
    assert stopped["ray"][0] == 2 and "clips/oven" in stopped["ray"][2]
    assert not Path("no.tap").exists()
    skipped = {
        engine: run("learn-folder", f"{engine}.tap", *asked[engine], "--skip-bad")
        for engine in asked
    }
    assert skipped["ray"][0] == 0 and "learned 167 clips" in skipped["ray"][1]
    assert skipped["ray"][1].replace("ray.tap", "local.tap") == skipped["local"][1]
    assert skipped["ray"][2] == skipped["local"][2] and "skipped: clips/oven" in skipped["ray"][2]
    assert_same(tapword.load("local.tap"), tapword.load("ray.tap"))


def test_learn_folder_adds_to_a_model_that_exists(cluster, folder, run):
    for engine in ("local", "ray"):
        taught = taught_here(Spotter("logmel", "tap:R=2"), demo_clips()[:40])
        taught.save(f"{engine}.tap")
        assert (
            run("learn-folder", f"{engine}.tap", "clips", "--skip-bad", "--engine", engine)[0] == 0
        )
    assert_same(tapword.load("local.tap"), tapword.load("ray.tap"))
    assert modelfile.read("ray.tap").header["generation"] == 2


def test_evaluate_gives_the_records_of_one_machine(cluster, folder, run, monkeypatch):
    monkeypatch.setattr(features, "SHARD", 20)
    asked = ["evaluate", "--data", "clips", *FAST, "--pooling", "max", "--orderings", "1"]
    asked += ["--jobs", "1"]
    records = {}
    for engine in ("local", "ray"):
        where = ["--engine", engine, "--cache", f"cache-{engine}", "--json", f"{engine}.json"]
        assert run(*asked, *where)[0] == 0
        records[engine] = json.loads(Path(f"{engine}.json").read_text())
    assert records["ray"]["config"]["skipped"] == records["local"]["config"]["skipped"] == 1
    accuracies = {
        engine: [(row["pooling"], row["acc"]) for row in records[engine]["results"]]
        for engine in records
    }
    assert accuracies["ray"] == accuracies["local"]
    shards = sorted(path.relative_to("cache-local") for path in Path("cache-local").glob("*/*.npz"))
    assert len(shards) > 12
    for shard in shards:
        with (
            np.load(Path("cache-local", shard)) as here,
            np.load(Path("cache-ray", shard)) as there,
        ):
            np.testing.assert_array_equal(here["kept"], there["kept"])
            np.testing.assert_allclose(here["vectors"], there["vectors"], rtol=1e-5)
    stopped = {
        engine: run(*asked, "--strict", "--cache", f"cache-{engine}", "--engine", engine)
        for engine in ("local", "ray")
    }
    assert stopped["ray"] == stopped["local"]
    assert stopped["ray"][0] == 2 and "clips/oven" in stopped["ray"][2]


def test_an_address_where_nobody_answers(cluster, folder, run):
    for address, wanted in [
        ("127.0.0.1:9", "no Ray cluster answers at 127.0.0.1:9"),
        ("127.0.0.1:99999", "no Ray cluster answers"),
        ("headnode", "wants HOST:PORT"),
        ("ray://127.0.0.1:10001", "wants HOST:PORT"),
    ]:
        code, _, error = run(
            "learn-folder", "no.tap", "clips", "--engine", "ray", "--address", address
        )
        assert code == 2 and wanted in error and len(error.splitlines()) == 1
    assert (
        "ray start --head --port=9"
        in run("evaluate", "--data", "clips", "--engine", "ray", "--address", "127.0.0.1:9")[2]
    )


def test_engines_by_name(folder, run):
    assert "known: local, ray" in run("learn-folder", "no.tap", "clips", "--engine", "spark")[2]
    assert "goes with --engine ray" in run("learn-folder", "no.tap", "clips", "--address", "x:1")[2]
    given = run("evaluate", "--features", "vectors.npz", "--engine", "ray")
    assert given[0] == 2 and "vectors are ready" in given[2]


def test_without_ray_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"pip install 'tapword\[ray\]'"), scale.cluster():
        pass


def test_a_cluster_that_keeps_failing_names_the_clips(cluster, monkeypatch):
    monkeypatch.setattr(scale, "RETRIES", 0)
    monkeypatch.setattr(workers, "listen", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    spotter = Spotter("logmel", "avg", "perceptron")
    with pytest.raises(TapwordError, match=r"on the clips from .*\.ogg on"):
        taught_there(cluster, spotter, demo_clips()[:10])


def test_a_machine_that_differs_is_refused(monkeypatch, tmp_path):
    backbone = registry.build("backbones", "logmel")
    parcel = workers.pack(backbones=[backbone], poolings=[], learners=[])
    monkeypatch.setattr(workers.socket, "gethostname", lambda: "node7")
    there, gone = tmp_path / "there.wav", tmp_path / "gone.wav"
    there.write_bytes(b"")
    workers.require_seen(parcel, [str(there)])
    with pytest.raises(InputError, match=r"gone\.wav is not there: every machine"):
        workers.require_seen(parcel, [str(there), str(gone)])
    heard, _ = workers.listen(
        workers.pack(
            backbones=[backbone],
            poolings=[registry.build("poolings", "avg")],
            learners=[registry.build("learners", "ncm")],
        ).replace('"host": "node7"', '"host": "node1"'),
        [],
        [str(gone)],
        skip_bad=True,
    )
    assert heard.error.startswith("on machine node7: ") and heard.kept == []
    other = json.loads(parcel) | {"version": "0.0.1"}
    with pytest.raises(InputError, match=r"node7 has tapword .* 0\.0\.1 asks"):
        workers.unpack(json.dumps(other))
    other = json.loads(parcel) | {"weights": ["logmel abc float16"]}
    with pytest.raises(InputError, match=r"wanted logmel abc float16, there is logmel"):
        workers.unpack(json.dumps(other))


@pytest.mark.soak
def test_a_machine_that_goes_down_loses_nothing(taught):
    ray = pytest.importorskip("ray", reason="needs ray: pip install 'tapword[ray]'")
    if ray.is_initialized():
        pytest.skip("this process is connected to another cluster; run it with -m soak")
    from ray.cluster_utils import Cluster

    clips, teach = taught
    machines = Cluster(True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    second = machines.add_node(num_cpus=1)
    spotter = Spotter(*PARTS, "ridge", align=True)

    def switch_off(done):
        if done == 3 * scale.FEWEST:
            machines.remove_node(second, allow_graceful=False)

    try:
        with scale.cluster(machines.address) as cluster:
            assert ray.cluster_resources()["CPU"] == 2
            taught_there(cluster, spotter, clips, progress=switch_off)
            # The cluster counts its machines a little later.
            deadline = time.monotonic() + 60
            while ray.cluster_resources()["CPU"] == 2 and time.monotonic() < deadline:
                time.sleep(0.2)
            assert ray.cluster_resources()["CPU"] == 1
        assert not ray.is_initialized()
    finally:
        machines.shutdown()
    assert_same(teach("ridge"), spotter)

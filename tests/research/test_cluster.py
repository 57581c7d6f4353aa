"""The Ray engine on a real cluster of two worker processes, beside one machine's results."""

import contextlib
import importlib.util
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile

import tapword
from tapword import registry
from tapword.assets import CLIPS
from tapword.audio import files
from tapword.errors import InputError, MissingExtra, TapwordError
from tapword.research import cluster as cluster_module
from tapword.research.cache import Cache
from tapword.research.cluster import (
    CLIPS_AT_ONCE,
    ENGINES,
    NETWORK,
    Cluster,
    ClusterSession,
    Tasks,
    connect,
    encode,
    in_worker,
    open_engine,
    pack,
    require_readable,
    unpack,
)
from tapword.research.datasets.folder import Folder
from tapword.research.evaluate import evaluate
from tapword.spotter import store
from tapword.spotter.encoder import Encoded, group_lengths
from tapword.spotter.spotter import Spotter
from tapword.spotter.whitening import Whitening, vector_kind
from tests.conftest import ROOT

# Ray leaves sockets and processes of its own to the system when it stops.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")
WORDS = ("lamp", "music", "oven", "stop", "timer", "window")
PARTS = ("speech_embedding", "tap:R=2")
FAST = ["--backbone", "logmel", "--pooling", "tap:R=2"]
# Few clips make several tasks.
SMALL = Tasks(fewest=32, fan=2)


@pytest.fixture(scope="module")
def cluster():
    if importlib.util.find_spec("ray") is None:
        pytest.skip("needs ray: pip install 'tapword[ray]'")
    # Before Ray is imported.
    with connect(cpus=2), contextlib.closing(Cluster(SMALL)) as made:
        yield made
    ray = importlib.import_module("ray")
    assert not ray.is_initialized(), "a cluster of our own is stopped at the end"


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
    encoder = Spotter(*PARTS, align=True)
    paths = [path for path, _ in clips]
    batches = range(0, len(clips), CLIPS_AT_ONCE)
    encoded = [encoder.encode(paths[i : i + CLIPS_AT_ONCE], learning=True) for i in batches]

    def teach(learner):
        spotter = Spotter(*PARTS, learner, align=True)
        spotter.learn_encoded(Encoded.concatenate(encoded), [word for _, word in clips])
        return spotter

    return clips, teach


def demo_clips():
    return [(path, path.parent.name) for path in sorted(CLIPS.glob("*/*.ogg"))]


def taught_here(spotter, clips):
    for start in range(0, len(clips), CLIPS_AT_ONCE):
        paths, words = zip(*clips[start : start + CLIPS_AT_ONCE], strict=True)
        spotter.learn_many(paths, words)
    return spotter


def taught_there(cluster, spotter, clips, **options):
    session = ClusterSession(spotter, cluster=cluster)
    session.check_files(clips, **options)
    session.teach(spotter)
    return spotter


def assert_same(one, other):
    assert list(one.words.items()) == list(other.words.items()), "counts, and the order of words"
    state = other.learner.state()
    for name, array in one.learner.state().items():
        tolerance = 1e-6 * np.abs(array).max()
        np.testing.assert_allclose(state[name], array, rtol=1e-5, atol=tolerance, err_msg=name)


def family(pid):
    """A process and all that descend from it."""
    children = Path(f"/proc/{pid}/task").glob("*/children")
    return [
        pid,
        *(p for file in children for child in file.read_text().split() for p in family(child)),
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_cluster_of_our_own_listens_on_loopback_alone(cluster):
    cluster._ray.get(cluster._task(lambda: 1).remote())
    sockets = set()
    for pid in family(os.getpid()):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                sockets.add(os.readlink(link))
    hosts = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *rest = line.split()
            if state == "0A" and f"socket:[{rest[5]}]" in sockets:
                hosts.append(local.split(":")[0])
    # As the system writes 127.0.0.1 there, in the two families of addresses.
    assert len(hosts) > 3 and all(host.endswith("0100007F") for host in hosts)
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"


def test_ray_that_was_imported_before_is_not_let_out_unasked(cluster):
    code = (
        "import ray; from tapword.research.cluster import connect\n"
        "with connect(cpus=1): print('connected')"
    )
    environment = {key: value for key, value in os.environ.items() if key != NETWORK}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment
    )
    if "connected" in done.stdout:
        pytest.skip("this machine has no address but loopback")
    assert f"set {NETWORK}=0 before the import" in done.stderr


def test_statistics_and_labels_are_those_of_one_machine(cluster, taught):
    clips, teach = taught
    here = teach("ridge")
    there = taught_there(cluster, Spotter(*PARTS, "ridge", align=True), clips)
    assert_same(here, there)
    encoded = here.encode([path for path, _ in clips[::5]])
    answers = here.predict_encoded(encoded)
    assert [a.word for a in there.predict_encoded(encoded)] == [a.word for a in answers]


@pytest.mark.parametrize("learner", ["perceptron", "cbcl", "snb", "sqda"])
def test_learners_of_every_kind(cluster, learner):
    clips = demo_clips()[:200]
    parts = ("logmel", "avg", learner)
    assert_same(
        taught_here(Spotter(*parts), clips), taught_there(cluster, Spotter(*parts), iter(clips))
    )


@pytest.mark.parametrize("learner", ["ncm", "perceptron"])
def test_alignment_and_whitening_reach_the_workers(cluster, learner):
    clips = demo_clips()[:100]
    raw = Spotter("logmel", "avg", "ncm", align=True, whitening="none")
    vectors = raw.encode([path for path, _ in clips]).vectors
    [(backbone, pooling)] = raw.encoder.parts
    about = vector_kind(backbone, pooling, align=True) | {"source": "the clips themselves"}
    groups = group_lengths(backbone, pooling)
    whitening = Whitening.fit(vectors, [word for _, word in clips], groups, about)
    here, there, plain = (
        Spotter("logmel", "avg", learner, align=True, whitening=chosen)
        for chosen in ([whitening], [whitening], "none")
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


def kill_workers(task):
    found = busy_workers(task)
    for pid in found:
        os.kill(pid, signal.SIGKILL)
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
@pytest.mark.parametrize("learner", ["ridge", "perceptron"])
def test_a_killed_worker_loses_nothing_and_counts_nothing_twice(cluster, taught, learner):
    clips, teach = taught
    spotter = Spotter(*PARTS, learner, align=True)
    killed = []

    def kill(done):
        if len(killed) < 2:
            killed.extend(kill_workers("learn" if spotter.learner.mergeable else "encode"))

    taught_there(cluster, spotter, clips, progress=kill)
    assert killed
    assert_same(teach(learner), spotter)


@pytest.fixture
def at_scale(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    yield __import__("mswc_at_scale")
    sys.modules.pop("mswc_at_scale", None)


def test_the_synthetic_corpus_has_the_published_totals(at_scale):
    planned = at_scale.plan(at_scale.CLIPS)
    n_words = sum(len(counts) for counts in planned.values())
    n_clips = sum(int(counts.sum()) for counts in planned.values())
    assert len(planned) == 50
    assert n_words == pytest.approx(at_scale.WORDS, rel=1e-4)
    assert n_clips == pytest.approx(at_scale.CLIPS, rel=1e-4)
    small = at_scale.plan(50_000)
    assert all((counts >= 1).all() for counts in small.values())
    assert small["en"][0] > 100 * small["en"][-1], "few words are common"


@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
def test_a_cluster_with_killed_workers_equals_one_process_bit_for_bit(cluster, at_scale, tmp_path):
    folder = tmp_path / "corpus"
    at_scale.make(folder, {"en": at_scale.power_law(60, 600), "de": at_scale.power_law(40, 200)})
    killed = []

    def kill(done):
        if len(killed) < 2:
            killed.extend(kill_workers("learn"))

    there = at_scale.teach(folder, cluster.open_session, kill)
    here = at_scale.teach(folder, at_scale.OneProcess(SMALL).open_session, lambda done: None)
    assert killed
    assert sum(there["en"].words.values()) == 600
    assert here.keys() == there.keys() == {"de", "en"}
    assert all(at_scale.equal(here[language], there[language]) for language in here)
    assert not at_scale.equal(here["en"], here["de"])


def test_a_lesson_too_large_to_review_keeps_no_clips(cluster, monkeypatch):
    clips = demo_clips()[:100]
    spotter = Spotter("logmel", "avg", "ncm")
    session = ClusterSession(spotter, cluster=cluster)
    session.check_files(clips)
    assert session.accepted and session.clips == 100
    n_words = len({word for _, word in clips})
    monkeypatch.setattr(cluster_module, "MAX_SCORES", len(session.accepted) * n_words - 1)
    session = ClusterSession(spotter, cluster=cluster)
    session.check_files(clips)
    assert not session.accepted and session.clips == 100
    assert session.review() == []


@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
def test_a_cluster_that_keeps_failing_names_the_clips(cluster, taught):
    clips, _ = taught
    spotter = Spotter(*PARTS, "perceptron", align=True)
    once = Cluster(Tasks(fewest=32, retries=0))
    with pytest.raises(TapwordError, match=r"on the clips from .*\.ogg on, tried 1 times"):
        taught_there(once, spotter, clips, progress=lambda done: kill_workers("encode"))


def test_clips_are_walked_as_workers_get_free(cluster):
    tasks = Tasks(fewest=32, ahead=1)
    walked, ahead = [], []

    def walk():
        for clip in demo_clips():
            walked.append(clip)
            yield clip

    spotter = Spotter("logmel", "avg", "ncm")
    taught_there(
        Cluster(tasks), spotter, walk(), progress=lambda done: ahead.append(len(walked) - done)
    )
    assert sum(spotter.words.values()) == len(walked)
    assert max(ahead) <= 2 * tasks.fewest


def test_a_process_makes_its_parts_once_and_uses_one_core(cluster):
    import ray

    parcel = pack(backbones=[registry.build("backbones", "speech_embedding:threads=4")])

    def look(_):
        import threadpoolctl

        with in_worker(parcel) as parts:
            [backbone] = parts["backbones"]
        threads = {pool["num_threads"] for pool in threadpoolctl.threadpool_info()}
        return os.getpid(), id(backbone), backbone.threads, max(threads)

    seen = ray.get([ray.remote(look).remote(number) for number in range(20)])
    assert len({(pid, made) for pid, made, _, _ in seen}) == len({pid for pid, *_ in seen}) <= 2
    assert {one[2:] for one in seen} == {(1, 1)}


def without_ray(said):
    """What a command said, less what Ray tells late of a worker that another test has killed."""
    code, output, errors = said
    return code, re.sub(r".*\(raylet\).*\n", "", output), errors


def test_learning_a_folder_says_the_same_of_a_broken_clip(cluster, folder, run):
    given = {engine: ["clips", "--engine", engine, *FAST] for engine in ("local", "ray")}
    stopped = {engine: without_ray(run("learn", "no.tap", *given[engine])) for engine in given}
    assert stopped["ray"] == stopped["local"]
    assert stopped["ray"][0] == 2 and "clips/oven" in stopped["ray"][2]
    assert not Path("no.tap").exists()
    skipped = {
        engine: without_ray(run("learn", f"{engine}.tap", *given[engine], "--skip-bad"))
        for engine in given
    }
    assert skipped["ray"][0] == 0 and "learned 167 clips" in skipped["ray"][1]
    assert skipped["ray"][1].replace("ray.tap", "local.tap") == skipped["local"][1]
    assert skipped["ray"][2] == skipped["local"][2] and "skipped: clips/oven" in skipped["ray"][2]
    assert_same(tapword.load("local.tap"), tapword.load("ray.tap"))


def test_noise_in_a_folder_is_left_out_alike(cluster, tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    lamp = Path("clips/lamp")
    lamp.mkdir(parents=True)
    shutil.copy(next((CLIPS / "lamp").glob("*.ogg")), lamp)
    hiss = 0.02 * np.random.default_rng(0).standard_normal(16_000)
    soundfile.write(lamp / "hiss.wav", hiss, 16_000)
    said = {e: without_ray(run("learn", f"{e}.tap", "clips", "--engine", e)) for e in ENGINES}
    assert said["ray"][1].replace("ray.tap", "local.tap") == said["local"][1]
    assert (
        said["ray"][2] == said["local"][2] and "left out 1 clip with only noise" in said["ray"][2]
    )
    assert_same(tapword.load("local.tap"), tapword.load("ray.tap"))
    run("learn", "ray.tap", "clips", "--engine", "ray", "--keep-noise")
    assert tapword.load("ray.tap").words == {"lamp": 3}


def test_a_lesson_is_checked_alike(cluster, tmp_path, monkeypatch, run):
    """A clip under a wrong name, and one with two words."""
    monkeypatch.chdir(tmp_path)
    takes = {word: sorted((CLIPS / word).glob("*.ogg"))[:6] for word in ("lamp", "music")}
    for word, paths in takes.items():
        Path("clips", word).mkdir(parents=True)
        for path in paths:
            shutil.copy(path, Path("clips", word))
    shutil.copy(takes["lamp"][0], "clips/music/wrong.ogg")
    lamp, music = (files.read(paths[1]) for paths in takes.values())
    both = np.concatenate([lamp, np.zeros(11_200, np.float32), music])
    soundfile.write("clips/music/both.wav", both, 16_000)
    said = {e: without_ray(run("learn", f"{e}.tap", "clips", "--engine", e)) for e in ENGINES}
    assert said["ray"][2] == said["local"][2]
    for warning in (
        'sounds like "lamp", not "music": clips/music/wrong.ogg',
        "contains more than one word; the loudest is taught: clips/music/both.wav",
        'the same recording is taught as "lamp" and as "music"',
    ):
        assert f"warning: {warning}" in said["ray"][2]


def test_learning_a_folder_adds_to_a_model_that_exists(cluster, folder, run):
    for engine in ("local", "ray"):
        taught = taught_here(Spotter("logmel", "tap:R=2"), demo_clips()[:40])
        taught.save(f"{engine}.tap")
        command = ("learn", f"{engine}.tap", "clips", "--skip-bad", "--engine", engine)
        assert run(*command)[0] == 0
    assert_same(tapword.load("local.tap"), tapword.load("ray.tap"))
    assert store.read("ray.tap").header["generation"] == 2


def test_evaluate_gives_the_records_of_one_machine(cluster, folder):
    def run(place, strict=False, **options):
        cache = Cache(place, shard=20)
        parts = (["logmel"], ["tap:R=2", "max"], ["ncm"])
        dataset = Folder("clips")
        return evaluate(dataset, *parts, cache=cache, strict=strict, orderings=1, jobs=1, **options)

    here, there = run("local"), run("ray", store=cluster.store)
    assert there.config.skipped == here.config.skipped == 1
    assert [(one.pooling, one.acc) for one in there.results] == [
        (one.pooling, one.acc) for one in here.results
    ]
    shards = sorted(path.relative_to("local") for path in Path("local").glob("*/*.npz"))
    assert len(shards) > 12
    for shard in shards:
        with np.load(Path("local", shard)) as mine, np.load(Path("ray", shard)) as theirs:
            np.testing.assert_array_equal(mine["kept"], theirs["kept"])
            np.testing.assert_allclose(mine["vectors"], theirs["vectors"], rtol=1e-5)
    with pytest.raises(InputError, match="clips/oven") as mine:
        run("local", strict=True)
    with pytest.raises(InputError, match="clips/oven") as theirs:
        run("ray", strict=True, store=cluster.store)
    assert str(theirs.value) == str(mine.value)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("127.0.0.1:9", "answers at 127.0.0.1:9 .*ray start --head --port=9"),
        ("127.0.0.1:99999", "no Ray cluster answers"),
        ("headnode", "must be auto or HOST:PORT"),
        ("ray://127.0.0.1:10001", "must be auto or HOST:PORT"),
    ],
)
def test_an_address_where_nobody_answers(cluster, address, message):
    with pytest.raises(InputError, match=message), open_engine("ray", address):
        pass


def test_engines_by_name():
    with open_engine("local", None) as nothing:
        assert nothing is None
    with pytest.raises(InputError, match="known: local, ray"), open_engine("spark", None):
        pass
    with pytest.raises(InputError, match="needs --engine ray"), open_engine("local", "x:1"):
        pass


def test_the_commands_that_take_an_engine(folder, run):
    for command in (["learn", "no.tap", "clips"], ["evaluate", "--data", "clips"]):
        code, _, error = run(*command, "--engine", "ray", "--address", "headnode")
        assert code == 2 and "must be auto or HOST:PORT" in error and len(error.splitlines()) == 1
    code, _, error = run("evaluate", "--features", "vectors.npz", "--engine", "ray")
    assert code == 2 and "cannot go with --engine" in error


def test_without_ray_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"pip install .*\[ray\]"), connect():
        pass


def test_a_machine_that_differs_is_refused(monkeypatch, tmp_path):
    backbone = registry.build("backbones", "logmel")
    parcel = pack(backbones=[backbone], poolings=[], learners=[])
    monkeypatch.setattr(socket, "gethostname", lambda: "node7")
    there, gone = tmp_path / "there.wav", tmp_path / "gone.wav"
    there.write_bytes(b"")
    require_readable(parcel, [str(there)])
    with pytest.raises(InputError, match=r"gone\.wav is missing: every machine"):
        require_readable(parcel, [str(there), str(gone)])
    parts = {"poolings": [registry.build("poolings", "avg")]}
    parts["learners"] = [registry.build("learners", "ncm")]
    other = replace(pack(backbones=[backbone], **parts), host="node1")
    with pytest.raises(InputError, match=r"^on machine node7: .*gone\.wav is missing"):
        encode(other, [], [(str(gone), "word")], keep_noise=True, skip_bad=True, split=None)
    other = replace(parcel, version="0.0.1")
    with (
        pytest.raises(InputError, match=r"node7 has tapword .* this one 0\.0\.1"),
        in_worker(other),
    ):
        pass
    other = replace(parcel, weights=("logmel abc float16",))
    with pytest.raises(InputError, match=r"needs logmel abc float16, has logmel"):
        unpack(other)


@pytest.mark.soak
def test_a_machine_that_goes_down_loses_nothing(taught):
    ray = pytest.importorskip("ray", reason="needs ray: pip install 'tapword[ray]'")
    if ray.is_initialized():
        pytest.skip("this process is connected to another cluster; run it with -m soak")
    from ray.cluster_utils import Cluster as Machines

    clips, teach = taught
    machines = Machines(True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    second = machines.add_node(num_cpus=1)
    spotter = Spotter(*PARTS, "ridge", align=True)

    def switch_off(done):
        if done == 3 * SMALL.fewest:
            machines.remove_node(second, allow_graceful=False)

    try:
        with connect(machines.address):
            assert ray.cluster_resources()["CPU"] == 2
            taught_there(Cluster(SMALL), spotter, clips, progress=switch_off)
            # The cluster counts its machines a little later.
            deadline = time.monotonic() + 60
            while ray.cluster_resources()["CPU"] == 2 and time.monotonic() < deadline:
                time.sleep(0.2)
            assert ray.cluster_resources()["CPU"] == 1
        assert not ray.is_initialized()
    finally:
        machines.shutdown()
    assert_same(teach("ridge"), spotter)

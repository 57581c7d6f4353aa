import csv
import json
import re
import shutil
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile
import threadpoolctl
from rich.console import Console

from tapword import registry
from tapword.backbones.base import Unavailable
from tapword.backbones.logmel import Logmel
from tapword.errors import InputError, how_to_install
from tapword.research import evaluate
from tapword.research.cache import Cache
from tapword.research.datasets.speech_commands import WORDS as KNOWN
from tapword.research.datasets.speech_commands import SpeechCommands
from tapword.research.paper import (
    TABLES,
    ReproduceOptions,
    claims,
    console_tables,
    figure3,
    names,
    page,
    reproduce,
)
from tapword.research.paper import published as paper
from tapword.research.paper.compare import Cell, Comparison, Group, Inputs, Reproduced
from tapword.research.paper.reproduce import Reproduction, banner
from tapword.research.paper.results import PaperResults, Run, TooLarge
from tapword.research.records import Environment, Result
from tests.conftest import shared, tone
from tests.research.conftest import cell_of

WORDS = {"up": 300.0, "go": 600.0, "on": 1200.0, "off": 2400.0}
TRAIN, TEST = 6, 3
# So that flat vectors of logmel, 3136 numbers, are too large for slda, and all others are not.
MAX_GB = 0.015


def sound(word: str, take: int, rng: np.random.Generator) -> np.ndarray:
    noise = 0.02 * rng.standard_normal(16_000).astype(np.float32)
    return tone(WORDS[word] * (1 + 0.04 * take)) + noise


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Speech Commands in little, and two sizes of one language of MSWC beside it."""
    root = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    commands, language = root / "commands", root / "mswc" / "de"
    rows = [["SET", "LINK", "WORD", "VALID", "SPEAKER", "GENDER"]]
    for word in WORDS:
        (commands / word).mkdir(parents=True)
        (language / "clips" / word).mkdir(parents=True)
        for take in range(TRAIN + TEST):
            name = f"{take:08x}_nohash_0.wav"
            for folder in (commands, language / "clips"):
                soundfile.write(folder / word / name, sound(word, take, rng), 16_000)
            split = "TRAIN" if take < TRAIN else "TEST"
            rows.append([split, f"{word}/{name}", word, "True", f"s{take}", "NAN"])
    held_out = [f"{w}/{i:08x}_nohash_0.wav\n" for w in WORDS for i in range(TRAIN, TRAIN + TEST)]
    (commands / "testing_list.txt").write_text("".join(held_out))
    (commands / "validation_list.txt").write_text("")
    with (language / "de_splits.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return root


@pytest.fixture(autouse=True)
def one_thread():
    # Threads that wait for each other make tiny products very slow on a busy machine.
    with threadpoolctl.threadpool_limits(1):
        yield


@pytest.fixture
def options(data):
    def make(**changes):
        options = {
            "mswc": data / "mswc",
            "backbones": ("logmel",),
            "orderings": 2,
            "n_words": (2, 4, 100),
            "timed_clips": 4,
            "max_gb": MAX_GB,
            "cache": Cache(data / "cache"),
        }
        return ReproduceOptions(data / "commands", **(options | changes))

    return make


def by_hand(data, pooling: str, learner: str, **protocol) -> Result:
    dataset = registry.build("datasets", "speech_commands", root=str(data / "commands"))
    records = evaluate.evaluate(
        dataset,
        ["logmel"],
        [pooling],
        [learner],
        cache=Cache(data / "cache"),
        jobs=1,
        orderings=2,
        **protocol,
    )
    return records.results[0]


@pytest.mark.parametrize("table", TABLES)
def test_every_table_runs(table, options):
    reproduction = reproduce(table, options())
    [made] = reproduction.tables
    assert made.name == table and made.notes
    assert all(comparison.rows for comparison in made.comparisons)
    cells = [c for shown in made.comparisons for _, row in shown.rows for c in row]
    assert any(cell.ours is not None for cell in cells)
    assert any(cell.difference is not None for cell in cells) or table == "table5"
    text = json.dumps(reproduction.as_json()["tables"], allow_nan=False)
    assert json.loads(text)[0]["tables"][0]["rows"][0]["cells"][0].keys() >= {"ours", "paper"}
    html = page(reproduction)
    assert made.title in html and "http" not in html.replace("http-equiv", "")
    assert ("<svg" in html) == (table in ("figure3", "wasserstein"))


def test_everything_at_once_shares_one_run(options):
    steps = []
    reproduction = reproduce("all", options(orderings=1, progress=lambda *step: steps.append(step)))
    assert [one.name for one in reproduction.tables] == list(TABLES)
    results = [one for part in reproduction.as_json()["records"] for one in part["results"]]
    streams = [step for step in steps if step[0] == "streams"]
    assert len(streams) == len([one for one in results if not one["error"]])
    slda = [one["order"] for one in results if one["paper_name"] == "SLDA" and not one["error"]]
    # 12 poolings of table 3 and 9 more of tables 4 and 7 but flat; two in random order; two sizes
    # of figure 3 with two poolings, of MSWC and of the commands.
    assert len(slda) == 12 + 9 + 2 + 8
    assert slda.count("iid") == 2
    assert reproduction.banner[0].startswith("NOT THE PAPER'S DATA. Ours: speech_commands: 4 words")
    assert "24 training and 12 test clips" in reproduction.banner[0]
    assert "NOT THE PAPER'S LANGUAGES" in reproduction.banner[1]


@pytest.mark.parametrize(
    ("words", "counts", "same"),
    [
        (KNOWN["v0.02"], (paper.N_TRAIN, paper.N_TEST), True),
        (KNOWN["v0.02"], (paper.N_TRAIN, 12), False),
        (KNOWN["v0.01"], (paper.N_TRAIN, paper.N_TEST), False),
    ],
)
def test_the_papers_data_are_its_words_and_its_clips(
    data, options, monkeypatch, words, counts, same
):
    results = PaperResults(SpeechCommands(root=str(data / "commands")), options())
    clips = dict(zip(("train", "test"), counts, strict=True))
    monkeypatch.setattr(SpeechCommands, "words", sorted(words))
    monkeypatch.setattr(SpeechCommands, "clips", lambda _, split: range(clips[split]))
    assert ("the paper's data set" in banner(results)) == same
    assert banner(results).startswith("NOT THE PAPER'S DATA.") != same


def test_all_leaves_figure3_out_where_there_is_no_mswc(options):
    with pytest.raises(InputError, match="figure3 needs MSWC"):
        reproduce("figure3", options(mswc=None))
    reproduction = reproduce("all", options(mswc=None, orderings=1))
    assert [one.name for one in reproduction.tables] == [
        name for name in TABLES if name != "figure3"
    ]
    assert "figure3 is left out" in reproduction.banner[-1]


def test_numbers_land_in_the_right_cells(data, options):
    [table1] = reproduce("table1", options()).tables
    [shown] = table1.comparisons
    expected = by_hand(data, "avg", "snb:variant=reference")
    for title, key in [("Acc", "acc"), ("BwT", "bwt"), ("Forg", "forg"), ("Pla", "pla")]:
        assert cell_of(shown, "SNB", title).ours == getattr(expected, key)
    assert cell_of(shown, "SNB", "Acc").paper == 27.0
    assert cell_of(shown, "TAP-SLDA").ours == by_hand(data, "tap", "slda:variant=reference").acc
    [table3] = reproduce("table3", options()).tables
    expected = by_hand(data, "max", "slda:variant=reference", matrix=False).acc
    assert cell_of(table3.comparisons[0], "MAX") == Cell(expected, 81.2)
    [table6] = reproduce("table6", options()).tables
    mixed = by_hand(data, "tap", "ncm", order="iid").acc
    by_class = by_hand(data, "tap", "ncm").acc
    assert cell_of(table6.comparisons[0], "TAP-NCM") == Cell(mixed, 64.5)
    assert cell_of(table6.comparisons[1], "TAP-NCM").ours == mixed - by_class
    [table2] = reproduce("table2", options()).tables
    accuracy, gain = table2.comparisons
    avg = by_hand(data, "avg", "ncm").acc
    assert cell_of(accuracy, "NCM").ours == by_class
    assert cell_of(gain, "NCM") == Cell(by_class - avg, 8.0)


def test_measuring_once_gives_the_same_accuracy_as_the_matrix(data):
    whole = by_hand(data, "avg", "slda")
    short = by_hand(data, "avg", "slda", matrix=False)
    assert short.acc == whole.acc and short.matrix is None and short.bwt is None


class Unread(SpeechCommands):
    public_name = "speech_commands"

    def read(self, clip):
        raise AssertionError(f"{clip} was read")


def test_too_large_is_said_before_a_clip_is_read(options, data):
    [made] = reproduce("table7", options(orderings=1)).tables
    [shown] = made.comparisons
    cell = cell_of(shown, "FLAT")
    assert cell.ours is None and cell.text == "too large" and cell.paper == 78.2
    assert shown.groups[0].cells(cell) == ["too large", "78.2", "—"]
    assert cell_of(shown, "FLAT", "Δfs") == Cell(98.0, 535.0)
    [note] = [note for note in made.notes if "max_gb" in note]
    assert "flat" in note and "0.0 GB" in note and "3136 numbers" in note
    results = PaperResults(Unread(str(data / "commands")), options(cache=Cache(data / "empty")))
    results.run(Logmel(), [Run("flat", "SLDA")])
    assert "max_gb" in results.get(Logmel(), Run("flat", "SLDA")).error
    with pytest.raises(AssertionError, match="was read"):
        results.run(Logmel(), [Run("avg", "SLDA")])


def test_padding_makes_flat_longer(options):
    [made] = reproduce("table7", options(orderings=1, pad_to_s=2.0)).tables
    assert cell_of(made.comparisons[0], "FLAT", "Δfs").ours == 198
    assert cell_of(made.comparisons[0], "RAP 10%", "Δfs").ours == 20
    with pytest.raises(InputError, match="pad-to-s"):
        reproduce("table7", options(pad_to_s=0.5))


def test_padded_clips_are_as_long_as_asked(data, options):
    for seconds in (1.0, 2.0):
        results = PaperResults(SpeechCommands(str(data / "commands")), options(pad_to_s=seconds))
        assert results.facts()["clip_s"] == seconds
        assert len(results.dataset.read(results.dataset.clips("test")[0])) == 16_000 * seconds


def test_exact_switches_the_rules(options):
    for exact in (False, True):
        reproduction = reproduce("table1", options(exact=exact, orderings=1)).as_json()
        used = {r["paper_name"]: r["learner"] for r in reproduction["records"][0]["results"]}
        assert list(used) == list(names.LEARNERS)
        changed = {name for name, spec in used.items() if ":" in spec}
        wanted = {"FT", "SNB", "CBCL", "SLDA", "SQDA", "iCaRL"}
        assert changed == ({"SNB", "SQDA"} if exact else wanted)
        # Variances that lean on other words' are ours, and never stand under the paper's names.
        alone = "enough=0" if exact else "variant=reference"
        assert (used["SNB"], used["SQDA"]) == (f"snb:{alone}", f"sqda:{alone}")
    assert names.learner("FT", False, ["go", "up"]) == "finetune:vocabulary=go+up"
    for word in ("a,b", "a+b"):
        assert names.learner("FT", False, [word, "up"]) == "finetune"


def test_the_papers_names_say_what_is_run():
    """Numbers in the paper's names are the arguments of our parts, and nothing else is changed."""

    def built(spec):
        return registry.build("poolings", spec)

    for table in (names.POOLINGS, names.LONG_POOLINGS):
        for name, spec in table.items():
            number = re.search(r"\d+", name)
            given = int(number[0]) if number else None
            family = re.match("AVGMAX|AVG|MAXW|MAX|MIX|RAP|L|TAP|TSDP|TSTP|STOCH|iSQRT|FLAT", name)[
                0
            ]
            ours = built(spec)
            assert ours.name == (
                {"L": "lp", "STOCH": "stochastic", "iSQRT": "isqrt_cov"}.get(family, family.lower())
            )
            wanted = {
                "MIX": {"alpha": 0.5},
                "L": {"p": given},
                "RAP": {"share": (given or 0) / 100},
                "MAXW": {"l": given},
                "TAP": {"R": given or 5},
            }
            for key, value in wanted.get(family, {}).items():
                assert getattr(ours, key) == value, name
            assert ours.arguments().keys() <= {*wanted.get(family, {}), *ours.parameters()}
    assert names.POOLINGS.keys() == paper.TABLE3.rows.keys()
    assert names.LONG_POOLINGS.keys() == paper.TABLE7.rows.keys()
    assert [getattr(built(spec), "R", 1) for spec in names.MOMENTS] == [1, 2, 3, 4, 5, 6]
    assert tuple(names.BACKBONES.values()) == paper.COLUMNS
    for name, theirs in names.BACKBONES.items():
        kind, size = re.fullmatch(r"(wav2vec2|emformer|hubert)_(base|large|xlarge)", name).groups()
        short = {"wav2vec2": "W2V", "emformer": "Emf", "hubert": "HB"}[kind]
        assert theirs == f"{short}-{ {'base': 'B', 'large': 'L', 'xlarge': 'XL'}[size] }"
    assert names.LEARNERS.keys() == paper.TABLE1["acc"].rows.keys() - {"TAP-SLDA"}
    for name, (right, reference) in names.LEARNERS.items():
        kinds = {spec.partition(":")[0] for spec in (right, reference)}
        assert kinds == {{"FT": "finetune", "PRCP": "perceptron"}.get(name, name.lower())}


def test_names_are_split_and_compared():
    assert names.split_specs(["a:x=1,y=2,b", " a:x=1,y=2 ,, c "]) == ["a:x=1,y=2", "b", "c"]
    assert names.paper_label() == "mean of 6" and names.paper_label(None, among=2) == "mean of 2"
    assert names.paper_label(Logmel()) == "mean of 6" and names.paper_name(Logmel()) is None
    assert names.paper_label(Untrained()) == names.paper_name(Untrained()) == "W2V-B"
    assert names.trained_name(Untrained("random")) == names.trained_name(Untrained())
    assert names.trained_name(Logmel()) == "logmel"


def test_backbones_are_tried_and_found_untrained_where_asked():
    steps = []
    found = names.find_backbones(
        [Untrained(), "logmel"], untrained=True, progress=lambda *step: steps.append(step)
    )
    assert [one.name for one in found.usable] == ["logmel"]
    assert list(found.unavailable) == ["wav2vec2_base"]
    assert [one.weights for one in found.untrained.values()] == ["random"]
    assert steps == [("looking for weights", done, 2) for done in (1, 2)]
    assert not names.find_backbones([Untrained(), "logmel"]).untrained
    # Named, any network is run untrained; unnamed, those of the paper's table alone.
    hubert = type("Hubert", (Untrained,), {"public_name": "hubert_base"})
    assert list(names.find_backbones([hubert(), "logmel"], untrained=True).untrained) == [
        "hubert_base"
    ]
    # An untrained network alone is enough, and one that cannot be had either way is named once.
    assert list(names.find_backbones([Untrained()], untrained=True).untrained) == ["wav2vec2_base"]

    def extract(self, audio):
        raise Unavailable("torch is not here")

    never = type("Never", (Untrained,), {"public_name": "hubert_base", "_extract": extract})
    unavailable = names.find_backbones([never(), "logmel"], untrained=True).unavailable
    assert unavailable == {"hubert_base": "torch is not here"}
    # A weight that was named stays, whatever is asked for all.
    asked = names.find_backbones(["logmel", Untrained("random")], weights="random")
    assert [one.spec for one in asked.usable] == ["logmel", "wav2vec2_base:weights=random"]


def test_without_extras_one_line_says_what_to_install(data, run, monkeypatch):
    """And what is installed can be run: the paper's backbones need packages, ours do not."""

    def absent(backbone):
        return f"{backbone.name} needs torch" if backbone.name not in names.SHIPPED else ""

    monkeypatch.setattr(names, "_why_unavailable", absent)
    where = ["--data", data / "commands", "--cache", data / "cache", "--jobs", 1, "--orderings", 1]
    code, output, error = run("reproduce", "table3", *where)
    assert code == 2 and not output and error.count("\n") == 1
    assert how_to_install("speech-embedding") in error and len(error) < 250
    offered = error.strip().rpartition("--backbones ")[2]
    assert offered == "ear_s,logmel"
    assert [one.name for one in names.find_backbones(names.split_specs([offered])).usable] == list(
        names.SHIPPED
    )
    # Those that lack the same are said together.
    given = "wav2vec2_base,hubert_base:layer=3,logmel"
    code, output, error = run("reproduce", "table3", *where, "--backbones", given)
    assert code == 0
    assert error == "unavailable: wav2vec2_base, hubert_base:layer=3: needs torch\n"


def test_weights_are_those_asked_for_unless_a_name_has_its_own(monkeypatch):
    # Nothing is built: the paper's networks are large.
    monkeypatch.setattr(names, "_why_unavailable", lambda backbone: "")
    given = ["hubert_base", "wav2vec2_base:weights=pretrained", "logmel"]
    for weights, wanted in (("random", ["random", "pretrained"]), (None, ["pretrained"] * 2)):
        usable = names.find_backbones(given, weights=weights).usable
        assert [one.weights for one in usable[:2]] == wanted and len(usable) == 3
    every = names.find_backbones(untrained=True)
    assert [one.name for one in every.usable] == [*names.BACKBONES, *names.STAND_INS]
    assert list(every.untrained) == ["wav2vec2_base", "wav2vec2_large"]


def test_paper_results_run_what_is_missing_alone(data, options):
    streams, asked = [], []

    class Counted(PaperResults):
        def splits(self, backbone, poolings):
            asked.append(list(poolings))
            return super().splits(backbone, poolings)

    def progress(what, *_):
        streams.append(what)

    results = Counted(SpeechCommands(str(data / "commands")), options(progress=progress))
    short, whole = Run("avg", "NCM"), Run("avg", "NCM", matrix=True)
    other, mixed = Run("max", "NCM"), Run("avg", "NCM", order="iid")
    assert results.get(Logmel(), short) == Result(learner="NCM", dim=0)
    # One with its matrix serves both; a second order and a second pooling are runs of their own.
    results.run(Logmel(), [short, whole, mixed, other, short])
    assert list(results.by_run) == [("logmel", one) for one in (whole, mixed, other)]
    assert asked == [["avg", "max"]]
    assert streams.count("streams") == 3 * 2
    assert results.get(Logmel(), short) is results.get(Logmel(), whole)
    assert results.get(Logmel(), whole).bwt is not None and results.get(Logmel(), mixed).bwt is None
    assert results.get(Logmel(), other).bwt is None
    assert results.get(Logmel(), other) is not results.get(Logmel(), short)
    results.run(Logmel(), [short, other, mixed])
    assert asked == [["avg", "max"], []] and streams.count("streams") == 3 * 2
    result = results.get(Logmel(), other)
    assert (result.backbone, result.pooling, result.learner) == ("logmel", "max", "ncm")
    assert results.accuracy(Logmel(), other) == result.acc == by_hand(data, "max", "ncm").acc
    # The order matters to this learner, so the right one was run.
    by_class, shuffled = (Run("avg", "PRCP", order=order) for order in ("class-iid", "iid"))
    results.run(Logmel(), [by_class, shuffled])
    for run in (by_class, shuffled):
        assert (
            results.accuracy(Logmel(), run)
            == by_hand(data, "avg", "perceptron", order=run.order).acc
        )
    assert results.accuracy(Logmel(), by_class) != results.accuracy(Logmel(), shuffled)
    # A result without its matrix does not serve who wants it.
    results.run(Logmel(), [other._replace(matrix=True)])
    assert asked[-1] == ["max"]


def test_a_bench_says_what_it_ran_on(data, options, tmp_path):
    shutil.copytree(data / "commands", tmp_path / "commands")
    (tmp_path / "commands" / "up" / f"{0:08x}_nohash_0.wav").write_bytes(b"no sound")
    (tmp_path / "commands" / "go" / f"{TRAIN:08x}_nohash_0.wav").write_bytes(b"no sound")
    chosen = options(cache=Cache(tmp_path / "cache"), orderings=1)
    results = PaperResults(SpeechCommands(str(tmp_path / "commands")), chosen)
    results.run(Logmel(), [Run("avg", "NCM")])
    results.run(Logmel(), [Run("max", "NCM")])
    facts = results.facts()
    assert (facts["skipped"], facts["orderings"], facts["clip_s"]) == (2, 1, 1.0)
    assert (facts["n_words"], facts["n_train"], facts["n_test"]) == (4, 4 * TRAIN, 4 * TEST)
    record = results.as_json()
    assert [one["order"] for one in record["results"]] == ["class-iid"] * 2
    assert record["results"][0]["paper_name"] == "NCM" and record["skipped"] == 2


def test_a_state_is_refused_from_the_first_byte_too_many(data, options):
    commands = SpeechCommands(str(data / "commands"))
    learner = registry.build("learners", "slda:variant=reference")
    gb = learner.bytes_for(32, len(WORDS)) / 1e9
    for max_gb, refused in ((gb, False), (gb * 0.999, True)):
        results = PaperResults(commands, options(max_gb=max_gb, orderings=1))
        results.run(Logmel(), [Run("avg", "SLDA")])
        assert isinstance(results.get(Logmel(), Run("avg", "SLDA")), TooLarge) is refused


class Untrained(Logmel):
    """As the paper's backbones are: trained weights are not here, random ones always."""

    public_name = "wav2vec2_base"

    def __init__(self, weights: str = "pretrained"):
        super().__init__()
        self.weights = weights

    def arguments(self):
        return {"weights": self.weights}

    def _extract(self, audio):
        if self.weights != "random":
            raise Unavailable("wav2vec2_base: its file is not here")
        return [-block for block in super()._extract(audio)]


def test_random_weights_stand_beside_the_papers_own(options):
    reproduction = reproduce("table5", options(backbones=(Untrained(), "logmel"), orderings=1))
    assert reproduction.unavailable == {"wav2vec2_base": "wav2vec2_base: its file is not here"}
    ours, stranger = reproduction.tables[0].comparisons
    assert (
        cell_of(ours, "SLDA", "random").paper == 42.3
        and cell_of(ours, "SLDA", "trained").paper == 82.4
    )
    assert cell_of(ours, "SLDA", "random").ours is not None
    assert cell_of(ours, "SLDA", "trained").ours is None
    assert cell_of(stranger, "NCM", "random") == Cell(None, 13.5)
    assert cell_of(stranger, "NCM", "trained").ours is not None
    with pytest.raises(InputError, match=r"none of the backbones.*not here"):
        reproduce("table3", options(backbones=(Untrained(),)))
    asked = options(backbones=(Untrained(), "logmel"), weights="random", orderings=1)
    reproduction = reproduce("table3", asked)
    assert reproduction.config["backbones"] == ["wav2vec2_base:weights=random", "logmel"]
    [shown] = reproduction.tables[0].comparisons
    assert cell_of(shown, "TAP", 0).paper == 90.0 and cell_of(shown, "TAP", 1).paper == 85.5
    both = [cell_of(shown, "TAP", index).ours for index in range(2)]
    assert cell_of(shown, "TAP", "mean of ours").ours == pytest.approx(np.mean(both))
    assert any("untrained" in note for note in reproduction.tables[0].notes)
    with pytest.raises(InputError, match="must be pretrained or random, got 'rnadom'"):
        reproduce("table3", options(weights="rnadom"))


def test_claims_by_hand():
    slda, tap_slda = Run("avg", "SLDA"), Run("tap", "SLDA")
    values = {slda: 80.0, tap_slda: 85.0, Run("avgmax", "SLDA"): 84.0}
    values |= {Run("avg", "NCM"): 50.0, Run("tap", "NCM"): 40.0}
    source = claims.Accuracies([values.get], values.get)
    assert source.gain(slda, tap_slda) == 25
    assert source.over_the_best() == 6.25
    assert source.exceptions() == 50
    assert source.gain(Run("avg", "FT"), Run("tap", "FT")) is None


def test_claims_follow_from_the_papers_own_tables():
    given = {c.text: c.recompute(claims.paper_accuracies(c.only)) for c in claims.CLAIMS}
    said = {claim.text: claim.figure for claim in claims.CLAIMS}
    strange = {
        "abstract: over competitors, average": 10.5,
        "introduction: over the best competitor": 10.5,
        "the same on Emf-B over SLDA": 35.9,
        "cases that TAP makes worse, % of all": 100 * 8 / 54,
    }
    for text, value in given.items():
        assert value == pytest.approx(strange.get(text, said[text]), abs=0.06), text


def test_figure3_says_what_cannot_be_had(options):
    [made] = reproduce("figure3", options(orderings=1)).tables
    [shown] = made.comparisons
    rows = [name for name, _ in shown.rows]
    beside = "speech_commands"
    sets = ["de, 2", "de, 4", f"{beside}, 2", f"{beside}, 4"]
    assert rows == [*sets, "de, mean", f"{beside}, mean", "mean of all"]
    assert cell_of(shown, "de, mean", "FT").paper == 1.5
    absent, other = [note for note in made.notes if "100 words" in note]
    assert "has 4 words" in absent and other.endswith("needs 100 words, has 4")
    assert made.drawings[0].count("<rect") == 3 * 4


def test_figure3_gains_are_of_tap_over_the_average():
    values = {Run("avg", "SLDA"): 80.0, Run("tap", "SLDA"): 85.0}
    results = SimpleNamespace(accuracy=lambda backbone, run: values[run])
    assert figure3.gain(results, Logmel()) == 25
    assert (paper.FIGURE3_WORDS, paper.FIGURE3_CLIPS) == ((25, 50, 100), 1000)


def test_figure3_means_by_hand():
    accuracies = {("ar", 25): (90, 92), ("de", 25): (80, 85), ("de", 100): (60, 80)}
    sets = {}
    for key, (slda, tap) in accuracies.items():
        values = dict(zip(figure3.METHODS.values(), (slda, tap, key[1] / 100), strict=True))
        results = {run: Result(learner=run.learner, dim=1, acc=a) for run, a in values.items()}
        sets[key] = SimpleNamespace(
            dataset=SimpleNamespace(notes=[]),
            run=lambda *_: None,
            get=lambda backbone, run, results=results: results[run],
            accuracy=lambda backbone, run, results=results: results[run].acc,
        )
    [shown] = figure3.figure3(Inputs(None, [Logmel()], {}, sets, [])).comparisons
    assert [(group.title, group.paper) for group in shown.groups] == [
        ("SLDA", ""),
        ("TAP-SLDA", ""),
        ("FT", "paper"),
        ("relative gain %", "paper"),
    ]
    rows = {name: [cell.ours for cell in cells] for name, cells in shown.rows}
    assert rows == {
        "ar, 25": [90, 92, 0.25, 20],
        "de, 25": [80, 85, 0.25, 25],
        "de, 100": [60, 80, 1, 50],
        "ar, mean": [90, 92, 0.25, 20],
        "de, mean": [70, 82.5, 0.625, 37.5],
        "mean of all": pytest.approx([230 / 3, 257 / 3, 0.5, 95 / 3]),
        "mean, 100 words": [60, 80, 1, 50],
    }
    beside = {name: [cell.paper for cell in cells] for name, cells in shown.rows}
    assert beside["ar, mean"] == [None] * 4 and beside["de, mean"] == [None, None, 1.5, None]
    assert beside["mean of all"] == [None, None, pytest.approx(1.56), 12.8]
    assert beside["mean, 100 words"] == [None, None, None, 12.6]


def test_figure3_takes_each_language_the_papers_first(tmp_path, monkeypatch):
    theirs = next(iter(paper.FIGURE3_FT))
    for language in ("aa", theirs, "zz"):
        (tmp_path / language).mkdir()
        (tmp_path / language / f"{language}_splits.csv").touch()
    assert figure3.languages(tmp_path) == [theirs, "aa", "zz"]
    assert figure3.languages(tmp_path / "aa") == ["aa"]

    def mswc(root, language, n_words, n_clips):
        assert root == str(tmp_path)
        return SimpleNamespace(of=(language, n_words, n_clips), clips=lambda split: [])

    monkeypatch.setattr(figure3, "Mswc", mswc)
    chosen = SimpleNamespace(n_words=(25, 50), pad_to_s=None)
    micro, absent = figure3.micro_sets(tmp_path, chosen)
    keys = [(language, size) for language in (theirs, "aa", "zz") for size in (25, 50)]
    assert {key: one.dataset.of for key, one in micro.items()} == {
        (language, size): (language, size, 1000) for language, size in keys
    }
    assert list(micro) == keys and not absent


def test_figure3_says_whose_languages_are_shown():
    clips = {"train": [None] * 1200, "test": [None] * 30}
    results = SimpleNamespace(dataset=SimpleNamespace(clips=clips.get))
    every = {(language, 25): results for language in paper.FIGURE3_FT}
    first, second, *_ = paper.FIGURE3_FT
    ours = " with 25 words, 1,200 training and 30 test clips"
    said = f"Micro-sets, ours: {first}{ours}; {second}{ours}; "
    assert figure3.banner(every).startswith(said)
    assert figure3.banner(every | {("aa", 25): results}).startswith(said)
    del every[list(every)[-1]]
    assert figure3.banner(every).startswith(f"NOT THE PAPER'S LANGUAGES. {said}")


def test_figure3_of_mswc_alone_needs_no_other_data(data, options):
    reproduction = reproduce(
        "figure3", replace(options(orderings=1, mswc=None), data=data / "mswc")
    )
    rows = [name for name, _ in reproduction.tables[0].comparisons[0].rows]
    assert rows == ["de, 2", "de, 4", "de, mean", "mean of all"]


def test_figure3_learns_as_many_clips_as_the_paper_and_says_which_it_left_out(
    data, options, tmp_path, monkeypatch
):
    language = tmp_path / "de"
    language.mkdir()
    (language / "clips").symlink_to(data / "mswc" / "de" / "clips")
    table = (data / "mswc" / "de" / "de_splits.csv").read_text()
    for word in WORDS.keys() - {"up"}:
        table = table.replace(f"{word},True,s0", f"{word},False,s0")
    (language / "de_splits.csv").write_text(table)
    monkeypatch.setattr(paper, "FIGURE3_CLIPS", 4)
    chosen = options(n_words=(1, 4), orderings=1, mswc=tmp_path)
    commands = SpeechCommands(str(data / "commands"))
    micro, absent = figure3.micro_sets(tmp_path, chosen, commands)
    assert not absent and len(micro) == 4
    assert micro["de", 1].dataset.words == ["up"]
    assert micro["speech_commands", 1].dataset.words == ["go"]
    for (_, size), results in micro.items():
        assert len(results.dataset.clips("train")) == 4 * size
        assert len(results.dataset.clips("test")) == TEST * size
    assert len(commands.clips("train")) == TRAIN * len(WORDS)
    [made] = reproduce("figure3", chosen).tables
    assert "de, 4 words: left out 3 rows not marked as valid (valid_only)" in made.notes
    assert any("does not mark as valid" in note for note in made.notes)


def test_the_other_reading_of_the_large_backbones_stands_beside_their_figures(options):
    for spec, theirs in (("hubert_large:layer=24", "HB-L"), ("hubert_xlarge:layer=48", "HB-XL")):
        assert names.paper_name(registry.build("backbones", spec)) == theirs
        [made] = reproduce("table3", options(orderings=1)).tables
        assert any(spec in note for note in made.notes)


def test_the_papers_figures_are_its_tables():
    tables = json.loads(shared("paper", "tables.json").read_text())
    assert tuple(tables["backbones"]) == paper.COLUMNS

    def flat(rows, *keys):
        def dig(value):
            for key in keys:
                value = value[key]
            return value

        return {row: [dig(v[b]) for b in paper.COLUMNS if b in v] for row, v in rows.items()}

    def averages(figures):
        return {row: figures.at(row, None) for row in figures.rows}

    table1 = {key: dict(figures.rows) for key, figures in paper.TABLE1.items()}
    assert all(rows.pop("CBCL") == rows["NCM"] for rows in table1.values())
    for key in ("acc", "bwt", "forg", "pla"):
        assert flat(tables["table1_methods_avg_pooling"], key) == table1[key]
    assert tables["table1_std_of_acc"] == table1["acc_std"]
    assert flat(tables["table2_methods_with_tap"]) == paper.TABLE2.rows
    assert flat(tables["table3_poolings_with_slda"]) == paper.TABLE3.rows
    assert flat(tables["table7_feature_size"]) == paper.TABLE7.rows
    for ours, theirs in (("acc", "acc"), ("delta_p", "delta_p_percent")):
        rows = tables["table4_moment_order_mean_over_backbones"].items()
        assert {r: [c[theirs] for c in v.values()] for r, v in rows} == paper.TABLE4[ours]
    for column, rows in tables["table5_random_vs_pretrained"].items():
        for row, figures in rows.items():
            for weights, number in figures.items():
                assert paper.TABLE5[weights].at(row, column) == number
    for column, rows in tables["table6_iid"].items():
        assert {row: paper.TABLE6.at(row, column) for row in rows} == rows
    sizes = {row: value["delta_fs"] for row, value in tables["table7_feature_size"].items()}
    assert sizes == paper.TABLE7_DELTA_FS
    printed = {row: value["avg"] for row, value in tables["table7_feature_size"].items()}
    assert printed == averages(paper.TABLE7)
    printed = tables["averages"]
    gains = averages(paper.TABLE2_GAIN)
    both = {row: [value, gains[row]] for row, value in averages(paper.TABLE2).items()}
    assert list(both.values()) == list(printed["table2 (gain)"].values())
    assert printed["table3"] == averages(paper.TABLE3)
    assert printed["table6"] == averages(paper.TABLE6)
    assert list(paper.CLAIMS.values()) == list(tables["claims_relative_gain_percent"].values())
    assert list(paper.FIGURE3_FT.values()) == tables["claims_other"]["figure3 FT acc per language"]
    assert paper.EXCEPTIONS == 100 * 7 / 54 and paper.ICARL_AVERAGE == 72.3
    text = tables["text"]
    assert text["tap_time_overhead_percent"] == paper.OVERHEAD
    moments = [text["wasserstein_moment_1"], text["wasserstein_moments_2_to_5"]]
    assert list(map(list, paper.WASSERSTEIN.values())) == moments


def test_the_papers_gains_are_differences_of_its_tables():
    first, *_ = paper.COLUMNS
    assert (paper.TABLE2.at("SLDA", first), paper.TABLE1["acc"].at("SLDA", first)) == (89.9, 82.4)
    assert paper.TABLE2_GAIN.at("SLDA", first) == pytest.approx(7.5)
    mixed, by_class = paper.TABLE6.at("TAP-FT", first), paper.TABLE2.at("FT", first)
    assert paper.TABLE6_CHANGE.at("TAP-FT", first) == pytest.approx(mixed - by_class) != 0


def test_command_prints_and_writes(data, run, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    target = tmp_path / "t.json", tmp_path / "t.html"
    where = ["--data", data / "commands", "--cache", data / "cache", "--jobs", 1]
    options = [*where, "--backbones", "logmel", "--orderings", 1]
    code, output, error = run(
        "reproduce", "table3", *options, "--out", target[0], "--out", target[1]
    )
    assert code == 0 and not error
    assert "NOT THE PAPER'S DATA" in output and "mean of 6" in output and "iSQRT-COV" in output
    stored = json.loads(target[0].read_text())
    assert stored.keys() == {"banner", "config", "tables", "records", "environment"}
    assert stored["config"].keys() >= {"table", "backbones", "unavailable", "command"}
    # One backbone is its own mean.
    assert [group["title"] for group in stored["tables"][0]["tables"][0]["groups"]] == ["logmel"]
    assert stored["tables"][0]["name"] == "table3"
    assert len(stored["records"][0]["results"]) == 12
    assert target[1].read_text().startswith("<!DOCTYPE html>")


def test_errors_are_one_line(data, run, tmp_path):
    where = ["--data", data / "commands", "--cache", data / "cache"]
    for arguments, said in [
        (["table8", *where], r"no table named 'table8'; known: table1, table2,"),
        (["table3", *where, "--backbones", "logmle"], "no backbone named 'logmle'"),
        (["table3", *where, "--out", tmp_path / "no" / "x.json"], "its folder does not exist"),
        (["figure3", *where, "--n-words", "many"], "--n-words must be whole numbers"),
        (["table3", "--data", tmp_path / "gone", *where[2:]], "gone does not exist"),
    ]:
        code, output, error = run("reproduce", *arguments)
        assert code == 2 and not output
        assert said in error and error.count("\n") == 1


def test_a_console_shows_every_cell_below_its_heading():
    shown = Comparison("Acc", "row", [Group("alone", ""), Group("both", "paper mean of 6")])
    shown.add("a", [Cell(1.0), Cell(2.0, 3.5)])
    shown.add("b", [Cell(4.0), Cell(None, 5.0, "too large")])
    console = Console(width=100)

    def lines(width):
        with console.capture() as capture:
            console.print(*console_tables(shown, width))
        return [line.split() for line in capture.get().splitlines() if line.strip(" ─")]

    assert lines(100) == [
        ["Acc"],
        ["alone", "both", "paper"],
        ["row", "ours", "ours", "mean", "of", "6", "diff"],
        ["a", "1.0", "2.0", "3.5", "-1.5"],
        ["b", "4.0", "too", "large", "5.0", "—"],
    ]
    assert lines(20)[:5] == [["Acc"], ["alone"], ["row", "ours"], ["a", "1.0"], ["b", "4.0"]]
    assert lines(20)[5] == ["Acc", "(continued)"]


def test_wide_tables_are_cut_into_groups():
    shown = Comparison("t", "row", [Group(f"backbone {i}") for i in range(6)])
    shown.add("a", [Cell(1.0, -0.04)] * 6)
    assert len(list(console_tables(shown, width=60))) == 3
    assert len(list(console_tables(shown, width=300))) == 1
    tables = [Reproduced([shown], name="table1", title="one of 6 backbones")]
    reproduction = Reproduction([], {}, {}, tables, [], Environment.since(0.0))
    html = page(reproduction)
    assert html.count("<h3>t</h3>") == 1 and html.count("<h3>t (continued)</h3>") >= 1
    assert [html.count(f">backbone {i}<") for i in range(6)] == [1] * 6
    assert shown.groups[0].cells(Cell(0.0, 0.04)) == ["0.0", "0.0", "+0.0"]
    assert shown.groups[0].cells(Cell(-0.01, 0.3)) == ["0.0", "0.3", "-0.3"]
    assert Group("gain", signed=True).cells(Cell(1.0, 2.5)) == ["+1.0", "+2.5", "-1.5"]
    with pytest.raises(ValueError, match="1 cells for 6 groups"):
        shown.add("b", [Cell(1.0)])

import csv
import json
from collections import Counter

import numpy as np
import pytest
import soundfile

from tapword import registry
from tapword.errors import InputError
from tapword.research import report
from tapword.research.evaluate import evaluate_vectors
from tapword.research.own_voice import IMPOSTORS, OwnVoice, People
from tapword.research.runner import Split
from tests.conftest import shared, tone
from tests.research.test_open_set import write_vectors

WORDS = [f"word{number}" for number in range(8)]
SPEAKERS = [f"person{number}" for number in range(10)]


def said(takes=4, people=SPEAKERS, words=WORDS):
    """Words and speakers of clips: everybody says every word so many times."""
    every = [(word, person) for word in words for person in people for _ in range(takes)]
    return [word for word, _ in every], [person for _, person in every]


def voiced(rng, voice=0.0, spread=0.2, takes=4):
    """Clips whose vectors hold the word, so much of the speaker, and noise."""
    words, speakers = said(takes)
    X = np.hstack([_one_hot(words), voice * _one_hot(speakers)])
    X = (X + spread * rng.standard_normal(X.shape)).astype(np.float32)
    return Split(X, words, X, words, speakers)


def _one_hot(names):
    _, number = np.unique(names, return_inverse=True)
    return np.eye(number.max() + 1)[number]


def test_own_draws_teach_and_ask_one_person():
    words, speakers = map(np.array, said())
    asked = set()
    for seed in range(len(SPEAKERS)):
        draw = People(words, speakers).own(3, 2, seed)
        mine = np.concatenate([draw.taught, draw.known, draw.owner])
        assert set(speakers[mine]) == {draw.person} and len(draw.words) == 3
        # Every clip of the person is taught, asked as known or asked as unknown; none is twice.
        assert sorted(mine) == np.flatnonzero(speakers == draw.person).tolist()
        assert Counter(words[draw.taught]) == dict.fromkeys(draw.words, 2)
        assert set(words[draw.known]) == set(draw.words)
        others = np.concatenate([draw.owner, draw.others])
        assert not set(words[others]) & set(draw.words)
        assert draw.person not in speakers[draw.others]
        asked.add(draw.person)
    # As many draws as people go through all of them.
    assert asked == set(SPEAKERS)


def test_draws_of_others_never_ask_who_was_taught():
    words, speakers = map(np.array, said())
    for seed in range(10):
        draw = People(words, speakers).others(3, 4, seed)
        assert draw.person is None and not len(draw.owner)
        assert Counter(words[draw.taught]) == dict.fromkeys(draw.words, 4)
        taught = set(speakers[draw.taught])
        # One take of each, and the same four people for all words.
        assert len(taught) == 4
        assert len(set(zip(words[draw.taught], speakers[draw.taught], strict=True))) == 12
        rest = np.concatenate([draw.known, draw.others])
        assert sorted(rest) == np.flatnonzero(~np.isin(speakers, list(taught))).tolist()
        assert set(words[draw.known]) == set(draw.words)
        assert not set(words[draw.others]) & set(draw.words)


def test_people_are_taught_twice_only_where_there_are_too_few():
    words, speakers = map(np.array, said(people=SPEAKERS[:3]))
    words = np.append(words, ["word0", "word1", "word2"])
    speakers = np.append(speakers, ["rare"] * 3)
    # "rare" says three words once, the others twelve times in all.
    draw = People(words, speakers).others(1, 2, 0)
    assert len(set(speakers[draw.taught])) == 2
    everybody = People(*said(people=SPEAKERS[:2], takes=3))
    with pytest.raises(InputError, match="2 of 2 speakers teach"):
        everybody.others(1, 3, 0)


def test_seeds_fix_draws_and_impostors_are_bounded():
    people = People(*said(takes=100))
    one, again, other = (people.others(3, 5, seed) for seed in (1, 1, 2))
    assert one.taught.tolist() == again.taught.tolist() != other.taught.tolist()
    assert one.others.tolist() == again.others.tolist() and len(one.others) == IMPOSTORS
    assert len(set(one.others)) == IMPOSTORS


def test_clear_words_are_heard_in_every_voice(rng):
    own, others = OwnVoice(known=3, shots=[3], draws=5).run(voiced(rng, spread=0.05), ["ncm"])
    assert (own.voice, others.voice) == ("own", "others")
    for result in (own, others):
        assert result.frr_5 == result.frr_1 == result.frr_1_draws == 0
        assert result.frr_1_ci == (0, 0) and result.median_known > result.median_others
    assert own.people == 5 and others.people > 5
    assert own.owner_1 == 0 and others.owner_1 is None and others.median_owner is None


def test_a_voice_in_the_vector_helps_its_owner_and_lets_the_owners_words_pass(rng):
    own, others = OwnVoice(known=3, shots=[3], draws=10).run(voiced(rng, 0.8, 0.25), ["ncm"])
    assert own.frr_1 < others.frr_1
    assert own.owner_5 > 10 and own.median_owner > own.median_others
    low, high = others.frr_1_ci
    assert low <= others.frr_1 <= high and low < high
    assert others.frr_5 <= others.frr_1
    assert [draw.seed for draw in own.orderings] == list(range(10))
    assert own.frr_5_draws == pytest.approx(np.mean([draw.frr_5 for draw in own.orderings]))


def test_one_threshold_over_draws_is_not_each_draws_own(rng):
    split = voiced(rng)
    # Half of the people speak so that their clips score differently.
    loud = np.isin(split.speakers, SPEAKERS[:5])
    X = np.where(loud[:, None], 3 * split.test, split.test)
    [result] = OwnVoice(voice="own", known=3, shots=[3]).run(
        split._replace(train=X, test=X), ["ncm"]
    )
    assert result.frr_5 > result.frr_5_draws


def test_a_single_draw_has_no_interval(rng):
    [result] = OwnVoice(voice="others", known=3, draws=1).run(voiced(rng), ["ncm"])
    assert result.frr_5_ci is None and result.frr_5 == result.frr_5_draws


def test_what_cannot_be_run_is_refused(rng):
    split = voiced(rng)
    with pytest.raises(InputError, match=r"5 or more takes of 3 or more .* 10 speakers here, 0"):
        OwnVoice(known=3, shots=[4]).run(split, ["ncm"])
    with pytest.raises(InputError, match="1 to 7 of the 8 words, got 8"):
        OwnVoice(known=8, shots=[2]).run(split, ["ncm"])
    with pytest.raises(InputError, match="0 of 8 words here"):
        OwnVoice(voice="others", shots=[50]).run(split, ["ncm"])
    with pytest.raises(InputError, match="known speakers"):
        OwnVoice(known=3).run(split._replace(speakers=()), ["ncm"])
    with pytest.raises(InputError, match="voice must be one of own, others, both; got 'mine'"):
        OwnVoice(voice="mine")
    with pytest.raises(InputError, match="one draw"):
        OwnVoice(draws=0)
    # Whenever the only one is taught who says another word.
    people = People(["a", "a", "a", "b"], ["me", "you", "they", "me"])
    with pytest.raises(InputError, match="only the people who teach"):
        for seed in range(10):
            people.others(1, 2, seed)


def test_records_are_written_in_every_kind(rng, tmp_path):
    protocol = OwnVoice(known=3, shots=[2], draws=3)
    records = evaluate_vectors(voiced(rng), ["ncm"], protocol=protocol)
    for suffix in report.WRITERS:
        report.write(records, tmp_path / f"records{suffix}")
    written = json.loads((tmp_path / "records.json").read_text())
    assert written["config"]["voice"] == "both" and written["config"]["order"] == "open-set"
    own, others = written["results"]
    assert own["voice"] == "own" and len(own["frr_1_ci"]) == 2 and others["owner_1"] is None
    with open(tmp_path / "records.csv", newline="") as file:
        assert [row["voice"] for row in csv.DictReader(file)] == ["own", "others"]
    page = (tmp_path / "records.html").read_text()
    assert "No results" not in page and "other people's other words pass" in page
    assert "FRR" in (tmp_path / "records.tex").read_text()


@pytest.fixture
def recorded(tmp_path):
    """Four words by six people, four takes each, laid out as Speech Commands."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "data"
    tests = []
    for number, word in enumerate(("left", "right", "stop", "go")):
        (folder / word).mkdir(parents=True)
        for person in range(6):
            for take in range(4):
                name = f"{word}/{person}abc_nohash_{take}.wav"
                clip = tone(300 * (number + 1)) + 0.001 * rng.standard_normal(16_000)
                soundfile.write(folder / name, clip, 16_000)
                tests += [name] if person > 3 else []
    (folder / "testing_list.txt").write_text("\n".join(tests))
    (folder / "validation_list.txt").write_text("")
    return folder


def test_every_clip_is_in_both_splits(recorded):
    dataset = registry.build("datasets", "speech_commands", root=str(recorded))
    both = dataset.in_both_splits()
    train, test = both.clips("train"), both.clips("test")
    assert [clip.path for clip in train] == [clip.path for clip in test] and len(train) == 96
    assert both.fingerprint() != dataset.fingerprint() and len(dataset.clips("test")) == 32


def test_the_command(recorded, run, tmp_path):
    parts = ("--backbone", "logmel", "--pooling", "avg", "--learner", "cosine")
    options = ("--data", recorded, "--cache", tmp_path / "cache", "--draws", 4, *parts)
    code, out, error = run(
        "evaluate", "--dataset", "speech_commands", "--open-set", "--voice", "both",
        "--known", 2, "--shots", 3, *options,
    )  # fmt: skip
    assert code == 0, error
    assert "own" in out and "others" in out and "FRR at 1%" in out and " to " in out
    code, _, error = run(
        "evaluate", "--dataset", "speech_commands", "--open-set", "--voice", "own",
        "--known", 2, *options,
    )  # fmt: skip
    assert code == 2 and "6 or more takes of 2 or more words" in error
    assert "of 6 speakers here, 0" in error
    code, _, error = run("evaluate", "--open-set", "--voice", "own", *options)
    assert code == 2 and "the speakers of its clips are unknown" in error
    code, _, error = run("evaluate", "--voice", "own", *options)
    assert code == 2 and "--voice goes with --open-set" in error


def test_ready_made_vectors_have_no_speakers(split, run, tmp_path):
    write_vectors(split, tmp_path / "v.npz")
    code, _, error = run(
        "evaluate", "--open-set", "--voice", "both", "--features", tmp_path / "v.npz"
    )
    assert code == 2 and "known speakers" in error


def test_real_speakers():
    """Who says what in real data, without a word of it heard."""
    subset = registry.build(
        "datasets", "speech_commands", root=str(shared("data", "speech_commands_v0.01_subset"))
    )
    with pytest.raises(InputError, match=r"speakers here, 0 have them"):
        OwnVoice(voice="own").clips_of(subset)
    assert OwnVoice(voice="others").clips_of(subset).clips("train")
    arabic = registry.build("datasets", "mswc", root=str(shared("data", "mswc_layout")))
    protocol = OwnVoice(voice="own", known=3, shots=[2], draws=24)
    clips = protocol.clips_of(arabic).clips("test")
    people = People([clip.word for clip in clips], [clip.speaker for clip in clips])
    assert len({people.own(3, 2, seed).person for seed in range(30)}) == 24

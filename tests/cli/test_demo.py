"""The demo tells what happens, and what happens is worth telling."""

import re

import numpy as np
import pytest

from tapword.cli import demo, demo_mic
from tapword.errors import how_to_install
from tapword.listening.detector import Event
from tapword.spotter.spotter import Spotter
from tests.cli.test_record import spoken


@pytest.fixture(scope="module")
def parts():
    """What the three parts give: steps, refusals, stream, spotter."""
    chosen, spotter = demo.setup(0), Spotter()
    steps = list(demo.teach(spotter, chosen))
    return (
        chosen,
        steps,
        list(demo.reject(spotter, chosen)),
        demo.listen(spotter, chosen, 0),
        spotter,
    )


def test_words_stay_that_a_fine_tuned_network_forgets(parts):
    chosen, steps, *_ = parts
    assert [step.word for step in steps] == chosen.taught
    assert steps[0].ours == steps[0].finetuned == 100
    end, tested = steps[-1], demo.N_TAUGHT * len(chosen.others)
    assert end.ours >= 95 and end.ours_forgot <= 0.05 * tested
    assert end.finetuned <= 80 and end.finetuned_forgot >= 0.2 * tested


def test_words_that_were_not_taught_are_mostly_refused(parts):
    chosen, _, refusals, *_ = parts
    assert [one.word for one in refusals] == chosen.unknown
    assert not set(chosen.unknown) & set(chosen.taught) and not set(chosen.teachers) & set(
        chosen.others
    )
    # Apart from the pair that the demo explains, they sound like no taught word.
    assert demo.TAUGHT_RHYME in chosen.taught and refusals[-1].word == demo.RHYME
    assert not {*demo.LEFT_OUT} & {*chosen.taught, *chosen.unknown}
    others = refusals[:-1]
    assert sum(one.rejected for one in others) >= 0.95 * sum(one.clips for one in others)
    assert all((one.confused_with is None) == (one.rejected == one.clips) for one in refusals)


def test_words_are_found_in_the_stream_where_they_are_said(parts):
    _, _, _, stream, spotter = parts
    known = [(start_s, word) for start_s, word in stream.words if word in spotter.words]
    assert len(known) == demo.N_SAID == len(stream.words) - 1
    found = [
        any(one.word == word and abs(one.start_s - start_s) < 0.5 for one in stream.events)
        for start_s, word in known
    ]
    assert sum(found) >= demo.N_SAID - 1


def test_the_chart_shows_both_lines_and_fits_a_terminal(parts):
    _, steps, *_ = parts
    assert "●" not in demo.chart([]).plain
    lines = demo.chart(steps).plain.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].count("●") == demo.N_TAUGHT and f"tapword {steps[-1].ours:.0f}%" in lines[0]
    [label] = [line for line in lines if "fine-tuned" in line]
    level = 20 * round(steps[-1].finetuned / 20)
    assert label.startswith(f" {level:3d}%") and label.rstrip().endswith(
        f"{steps[-1].finetuned:.0f}%"
    )
    low = demo.Step("x", 100, 0, 0, 9)
    assert demo.chart([low]).plain.splitlines()[5].startswith("   0% ┤   ○")


def test_the_timeline_puts_words_where_they_are(parts):
    _, _, _, stream, _ = parts
    sound, said, heard, sure = (line.plain[7:] for line in demo.timeline(stream))
    assert max(map(len, (sound, said, heard, sure))) <= 73
    for start_s, word in stream.words:
        column = said.index(word)
        assert abs(column * demo.LETTER_S - start_s) < 0.5
        assert set(sound[column + 1 : column + 3]) & set("▅▆▇█")
        # Below it, at the same column, what was heard of it.
        event = next((one for one in stream.events if abs(one.start_s - start_s) < 0.5), None)
        under = heard[column:].split()[0]
        assert under == ("-" if event is None else event.word)
        assert event is None or int(sure[column:].split()[0]) == event.confidence >= 50


def test_the_timeline_shows_what_was_not_said():
    events = [Event("lamp", 1.2, 1.5, 0.6, 70), Event("oven", 3.1, 3.6, 0.5, 55)]
    events.append(Event("oven", 1.3, 1.6, 0.5, 51))
    sound = np.zeros(5 * 16_000, dtype=np.float32)
    stream = demo.Stream(sound, [(1.0, "lamp"), (2.0, "fan")], events)
    _, said, heard, sure = (line.plain[7:] for line in demo.timeline(stream))
    assert said == "      lamp      fan"
    assert heard == "      lamp oven -   oven"
    assert sure == "      70   51       55"


def test_the_demo_ends_with_what_to_do_next(run, monkeypatch):
    code, output, error = run("demo")
    assert code == 0 and error == ""
    assert re.search(r"tapword \d+%", output) and re.search(r"rejected +\d+ of 9 times", output)
    assert "Heard" in output and "differ in their first sound alone" in output
    assert "<Spotter" not in output
    assert max(map(len, output.splitlines())) <= 80
    commands = output.partition("Next: your own words\n")[2].splitlines()
    assert [line.split("  ")[0] for line in commands] == [
        "tapword demo --mic",
        "tapword studio home.tap",
        "tapword learn home.tap WORD FILES...",
    ]
    assert how_to_install("web") not in output


def test_ones_own_voice(fake, tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo_mic, "LISTEN_S", 8)
    fake(np.concatenate([spoken("lamp", 3), spoken("lamp", 1, first=1), spoken("music", 1)]))
    code, output, error = run("demo", "--mic", "--word", "lamp")
    assert (code, error) == (0, "") and "take 3 of 3: good" in output
    assert re.search(r"\d\.\d s  lamp, sure [5-9]\d$", output, re.MULTILINE)
    assert "Heard 'lamp' 1 time." in output and "tapword learn home.tap lamp --mic" in output
    assert list(tmp_path.iterdir()) == []


def test_a_word_needs_the_microphone(run):
    code, _, error = run("demo", "--word", "lamp")
    assert code == 2 and "--word and --device need --mic" in error

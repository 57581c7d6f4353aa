"""The demo tells what happens, and what happens is worth telling."""

import re

import pytest

from tapword.cli import demo
from tapword.errors import how_to_install
from tapword.listening.detector import Event
from tapword.spotter.spotter import Spotter


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
    assert sum(one.rejected for one in refusals) >= 0.7 * sum(one.clips for one in refusals)
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
    assert label.startswith("  60%") and label.rstrip().endswith(f"{steps[-1].finetuned:.0f}%")
    low = demo.Step("x", 100, 0, 0, 9)
    assert demo.chart([low]).plain.splitlines()[5].startswith("   0% ┤   ○")


def test_the_timeline_puts_words_where_they_are(parts):
    _, _, _, stream, _ = parts
    sound, said, heard, times = (line.plain[7:] for line in demo.timeline(stream))
    assert max(map(len, (sound, said, heard, times))) <= 73
    for start_s, word in stream.words:
        column = said.index(word)
        assert abs(column * demo.LETTER_S - start_s) < 0.5
        assert set(sound[column + 1 : column + 3]) & set("▅▆▇█")
    late = stream._replace(events=[Event("lamp", 1.0, 1.5, 1.0), Event("oven", 1.1, 1.6, 1.0)])
    assert demo.timeline(late)[2].plain[7:] == "      lamp oven"


def test_the_demo_ends_with_what_to_do_next(run, monkeypatch):
    code, output, error = run("demo")
    assert code == 0 and error == ""
    assert re.search(r"tapword \d+%", output) and re.search(r"rejected +\d+ of 11 times", output)
    assert "Found" in output and "<Spotter" not in output
    assert max(map(len, output.splitlines())) <= 80
    commands = output.partition("Next: your own words\n")[2].splitlines()
    assert [line.split("  ")[0] for line in commands] == [
        "tapword studio home.tap",
        "tapword learn home.tap WORD FILES...",
    ]
    assert how_to_install("web") not in output

"""Commands that are started when words are detected."""

import io
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import soundfile
from rich.progress import Progress

from tapword.cli import action as module
from tapword.cli import listen
from tapword.cli.action import Action
from tapword.errors import InputError
from tapword.listening.decider import Event
from tapword.listening.detector import Detector
from tapword.spotter.spotter import Spotter
from tests.conftest import ROOT
from tests.sounds import RATE, samples, silence

# Writes its input to a file, which gets its name when it is complete.
NOTE = """
import json, os, sys
values = {name: value for name, value in os.environ.items() if name.startswith("TAPWORD_")}
written = json.dumps([sys.argv[1:], values, sys.stdin.read()])
open(f"{os.getpid()}.part", "w").write(written)
os.rename(f"{os.getpid()}.part", f"{values['TAPWORD_START']}.written")
"""


@pytest.fixture
def note(tmp_path, monkeypatch):
    """A command that writes down its input."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "note.py").write_text(NOTE)
    return f"{shlex.quote(sys.executable)} note.py"


@pytest.fixture
def hold(tmp_path, monkeypatch):
    """A command that runs until the file `go` is there, or it is ended."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hold.py").write_text(
        "import os, time\nopen(f'{os.getpid()}.running', 'w').close()\n"
        "while not os.path.exists('go'):\n    time.sleep(0.01)\n"
    )
    yield f"{shlex.quote(sys.executable)} hold.py"
    (tmp_path / "go").touch()


def written(folder):
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*.written"))]


def event_of(word, start_s=1.0):
    return Event(word, start_s, start_s + 0.5, 0.51234, 93)


def until(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came to it"
        time.sleep(0.01)


PLAIN = ["lamp", "turn it on", "it's mine", "T-shirt 2", "हिन्दी", "l\u2019eau", "ランプ", "10"]
NOT_PLAIN = [
    *('it\'s "mine"', "; touch x", "$(touch x)", "{score}", "a\\b", "-rf", "a -c", "a--b", "-"),
    *("x.py", "a/b", "a=b", "rock 'n' roll", "lamp!", "print(1)", "@file", "a  b", "\U0001f4a1"),
]


@pytest.mark.parametrize("word", [*PLAIN, *NOT_PLAIN])
def test_only_a_plain_name_becomes_an_argument_and_stays_inside_it(note, tmp_path, capsys, word):
    with Action(
        note + " {word} 'is {word}, from {start} to {end}: {score}, {confidence}' {", True
    ) as action:
        action(event_of(word))
    [[arguments, values, given]] = written(tmp_path)
    shown = word if word in PLAIN else "TAPWORD_WORD"
    assert arguments == [shown, f"is {shown}, from 1.00 to 1.50: 0.51, 93", "{"]
    assert given == ("" if word in PLAIN else f"{word}\n")
    assert ("is not a plain name" in capsys.readouterr().err) == (word in NOT_PLAIN)
    assert (
        values.items()
        >= {
            "TAPWORD_WORD": word,
            "TAPWORD_SCORE": "0.51",
            "TAPWORD_CONFIDENCE": "93",
            "TAPWORD_START": "1.00",
            "TAPWORD_END": "1.50",
        }.items()
    )
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    "command",
    [
        *("env {python} -W ignore {word}", "{python} -W ignore {word}", "bash -o pipefail {word}"),
        *(
            "awk {word}",
            "watch -g {word}",
            "script -c {word}",
            "su -c {word}",
            "env {python} {word}",
        ),
    ],
)
def test_no_interpreter_gets_a_word_that_could_be_code(monkeypatch, command):
    """Whether or not the program is one that tapword knows."""
    started = []

    def start(arguments, **options):
        started.extend(arguments)
        raise OSError("not here")

    monkeypatch.setattr(module.shutil, "which", lambda program: program)
    monkeypatch.setattr(module.subprocess, "Popen", start)
    with Action(command.replace("{python}", sys.executable), True) as action:
        action(event_of("$(touch evil);BEGIN{system()}.py"))
    assert started[-1] == "TAPWORD_WORD" and not any("evil" in one for one in started)


def test_what_is_not_passed_as_an_argument_is_said_once_and_only_where_it_was_wanted(note, capsys):
    with Action(note + " {word}", True) as action:
        action(event_of("a=b"))
        action(event_of("a=b", 2.0))
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "a=b is not a plain name" in error and "$TAPWORD_WORD and on standard input" in error
    with Action(note, True) as action:
        action(event_of("a=b", 3.0))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("echo 'lamp", "is not a command: No closing quotation"),
        ("  ", "needs a command"),
        ("echo {words}", "replaces {word}, {score}, {confidence}, {start}, {end}, got"),
        ("echo ${HOME}", "got {HOME}"),
        ("{word} on", "must name a program"),
        ("no-such-program {word}", "program 'no-such-program' was not found"),
        ("sh -c 'echo {word}'", "must not be run as code"),
        ("sudo /bin/bash -ec 'echo {word}' bash", "must not be run as code"),
        ("python3.12 -c 'print({score})'", "must not be run as code"),
    ],
)
def test_what_cannot_be_a_command_is_refused_at_once(command, message):
    with pytest.raises(InputError) as error:
        Action(command, True)
    assert message in str(error.value)


@pytest.mark.parametrize(
    "command",
    [
        *(
            'sh -c "{word}"',
            'sh -c -x "echo {word}"',
            'sh -c -- "echo {word}"',
            'bash -cx "{word}"',
        ),
        *('sh -o pipefail -c "echo {word}"', "python3 -c'print({word})'", 'perl -e"{word}"'),
        *('node --eval "{word}"', "node --eval={word}", 'env -S "sh -c {word}"', "sh {word}"),
        *('env A=1 sh -c "{word}"', 'nice bash -c "{word}"'),
    ],
)
def test_a_word_never_becomes_code(command):
    with pytest.raises(InputError, match="must not be run as code"):
        Action(command, True)


@pytest.mark.parametrize(
    "command", ["sh act.sh {word}", "sh -c 'echo $1' sh {word}", "env A=1 echo --said={word}"]
)
def test_a_word_may_be_given_to_a_script(command):
    assert Action(command, True).arguments


def test_a_shell_may_be_given_the_word_as_an_argument(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Action("""sh -c 'echo "$1$TAPWORD_WORD" > said' sh {word}""", True) as action:
        action(event_of("lamp"))
    assert (tmp_path / "said").read_text() == "lamplamp\n"
    with Action(
        """sh -c 'read -r line; echo "$line$TAPWORD_WORD" > said' sh {word}""", True
    ) as action:
        action(event_of("$(id)"))
    assert (tmp_path / "said").read_text() == "$(id)$(id)\n"


def test_a_failing_command_is_said_and_the_next_one_runs(note, tmp_path, capsys):
    with Action("sh -c 'exit 3' {word}", True) as action:
        action(event_of("lamp"))
        action(event_of("music", 2.0))
    error = capsys.readouterr().err
    assert "the command for lamp failed: exit status 3" in error
    assert "the command for music failed: exit status 3" in error
    with Action("sh -c 'kill -9 $$'", True) as action:
        action(event_of("lamp"))
    assert "the command for lamp failed: ended by signal 9" in capsys.readouterr().err
    program = tmp_path / "gone"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    with Action("./gone", True) as action:
        program.unlink()
        action(event_of("lamp"))
    assert "the command for lamp could not be started" in capsys.readouterr().err


def test_commands_run_beside_each_other_and_too_many_are_dropped(hold, tmp_path, capsys):
    with Action(hold, may_wait=False) as action:
        for number in range(module.AT_ONCE):
            action(event_of("lamp", float(number)))
        until(lambda: len(list(tmp_path.glob("*.running"))) == module.AT_ONCE)
        action(event_of("music"))
        assert "no command was started for music: 8 are still running" in capsys.readouterr().err
        (tmp_path / "go").touch()
    assert len(list(tmp_path.glob("*.running"))) == module.AT_ONCE


def test_what_takes_long_at_the_end_is_said(tmp_path, hold, monkeypatch, capsys):
    monkeypatch.setattr(module, "SOON_S", 0.05)
    # The command ends once it was said that it is waited for.
    monkeypatch.setattr(module.err, "print", lambda text: (print(text), (tmp_path / "go").touch()))
    with Action(hold, may_wait=True) as action:
        action(event_of("lamp"))
    assert capsys.readouterr().out == "waiting for 1 command; press Ctrl-C to stop\n"
    with Action("true", may_wait=True) as action:
        monkeypatch.setattr(module, "SOON_S", 30)
        action(event_of("lamp"))
    assert capsys.readouterr().out == ""


def test_where_nothing_is_lost_by_it_commands_wait_for_each_other(note, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "AT_ONCE", 1)
    with Action(note, may_wait=True) as action:
        for number in range(3):
            action(event_of("lamp", float(number)))
            assert len(written(tmp_path)) == number
    assert len(written(tmp_path)) == 3


def test_files_and_pipes_start_commands(model, sound, run, pipe, note, tmp_path):
    soundfile.write("room.wav", sound, RATE)
    over = Detector(Spotter.load(model))(sound)[0].score + 0.05
    for source in ("room.wav", "-"):
        pipe(samples(sound))
        # A near miss starts nothing.
        given = [source, "--near", "--threshold", f"lamp={over}", "--exec", note + " {word} {end}"]
        code, output, error = run("listen", model, *given)
        assert code == 0 and output.count("lamp") == output.count("music") == 1
        [[[word, end], values, sound_left]] = written(tmp_path)
        assert word == values["TAPWORD_WORD"] == "music" and sound_left == ""
        assert float(end) > float(values["TAPWORD_START"])
        (tmp_path / f"{values['TAPWORD_START']}.written").unlink()
        assert "failed" not in error


def test_the_meter_makes_room_for_what_commands_print(model, run, monkeypatch):
    soundfile.write("room.wav", silence(1.0), RATE)
    shown = []

    class Meter(Progress):
        def __init__(self, *columns, disable, **options):
            shown.append(not disable)
            super().__init__(*columns, disable=True, **options)

    monkeypatch.setattr(listen, "Progress", Meter)
    monkeypatch.setattr(type(listen.err), "is_terminal", property(lambda console: True))
    for given in ([], ["--exec", "true"]):
        assert run("listen", model, "room.wav", *given)[0] == 0
    assert shown == [True, False]


def test_a_wrong_command_is_one_line_before_listening(model, run, pipe):
    pipe(b"")
    code, output, error = run("listen", model, "-", "--exec", "echo {name}")
    assert (code, output) == (2, "") and "got {name}" in error and error.count("\n") == 1


def test_a_failure_is_said_while_listening_goes_on(model, sound, run, pipe, monkeypatch):
    said = []

    class Patient(io.BytesIO):
        """Silence comes after the sound until somebody spoke of a failure."""

        left = 1000

        def read1(self, size):
            data = super().read1(size)
            if data or said or not self.left:
                return data
            self.left -= 1
            time.sleep(0.01)
            return bytes(size)

    pipe(b"")
    monkeypatch.setattr(sys.stdin, "buffer", Patient(samples(sound)))
    monkeypatch.setattr(module, "warn", said.append)
    code, _, error = run("listen", model, "-", "--exec", "sh -c 'exit 4'")
    assert code == 0 and "2 events" in error and sys.stdin.buffer.left
    assert said[0] == "the command for lamp failed: exit status 4"


def test_ctrl_c_ends_the_listening_and_a_second_one_the_commands(model, sound, hold, tmp_path):
    listening = subprocess.Popen(
        [sys.executable, "-m", "tapword", "listen", str(model), "-", "--exec", hold],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        process_group=0,
    )
    with listening:
        listening.stdin.write(samples(sound))
        listening.stdin.flush()
        until(lambda: len(list(tmp_path.glob("*.running"))) == 2)
        # As a terminal does it: to all of the group.
        os.killpg(listening.pid, signal.SIGINT)
        assert b"waiting for 2 commands" in listening.stderr.readline()
        assert listening.poll() is None
        os.killpg(listening.pid, signal.SIGINT)
        _, error = listening.communicate(timeout=30)
    assert listening.returncode == 0
    assert error.count(b"failed: ended by signal 15") == 2 and b"2 events" in error
    for path in tmp_path.glob("*.running"):
        with pytest.raises(ProcessLookupError):
            os.kill(int(path.stem), 0)


@pytest.mark.skipif(os.name == "nt", reason="needs process groups")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_commands_end_with_tapword(hold, tmp_path, number):
    """Whatever ends it; one command has ended before, and its number may be another's by now."""
    script = (
        "import sys, time\nfrom tapword.cli.action import Action\n"
        "from tapword.listening.decider import Event\n"
        "with Action('true', False) as action:\n    action(Event('a', 0.0, 1.0, 0.5))\n"
        "with Action(sys.argv[1], False) as action:\n"
        "    action(Event('a', 0.0, 1.0, 0.5))\n    action(Event('b', 0.0, 1.0, 0.5))\n"
        "    time.sleep(60)\n"
    )
    # The command's own child belongs to its group.
    command = f"sh -c {shlex.quote(hold + ' & wait')}"
    with subprocess.Popen(
        [sys.executable, "-c", script, command], env=os.environ | {"PYTHONPATH": str(ROOT / "src")}
    ) as listening:
        until(lambda: len(list(tmp_path.glob("*.running"))) == 2)
        listening.send_signal(number)
        assert listening.wait(timeout=30) == -number
    pids = [int(path.stem) for path in tmp_path.glob("*.running")]
    until(lambda: not any(runs(pid) for pid in pids))


def runs(pid):
    """Whether a process runs; one that ended and that nobody asked after does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/status")
    return not status.exists() or "State:\tZ" not in status.read_text()


def test_nothing_is_killed_that_has_ended(tmp_path, monkeypatch):
    """The guard forgets a command once it has ended: its number may be another process's."""
    written = []
    monkeypatch.setattr(module._Guard, "update", lambda guard, groups: written.append(groups))
    with Action("true", True) as action:
        action(event_of("lamp"))
    assert len(written) == 2 and len(written[0]) == 1 and written[1] == []

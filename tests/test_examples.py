"""The examples in C are built as their pages say, and run."""

import io
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import soundfile

from tapword import Detector, Spotter
from tapword.audio.files import as_float
from tapword.export.c import header as c_header
from tapword.export.c.reduced import for_device
from tests.conftest import ROOT
from tests.export.test_export import clips_of, compile_c, taught

EXAMPLES = ROOT / "examples"
WORDS = ("lamp", "door")


@pytest.fixture(scope="module")
def spotter() -> Spotter:
    return for_device(taught(WORDS))


@pytest.fixture(scope="module")
def header(spotter, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("header") / "home.h"
    text = c_header.build(spotter, max_words=10, eight_bits=True).text
    path.write_text(text, encoding="utf-8")
    return path


def stream() -> np.ndarray:
    """Give words with silence around them, 16 bits."""
    words = [clips_of(word, 9, 10)[0] for word in (*WORDS, "timer", WORDS[0])]
    sound = np.concatenate([np.pad(word, (12_000, 8_000)) for word in words])
    return np.round(sound * 32767).astype("<i2")


def wav(sound: np.ndarray, rate: int = 16_000) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, sound, rate, format="WAV", subtype="PCM_16")
    return file.getvalue()


def test_words_come_from_a_pipe(spotter, header, tmp_path):
    program = tmp_path / "listen"
    compile_c(f"-I{header.parent}", EXAMPLES / "c" / "listen.c", "-o", program)
    sound = stream()
    detector = Detector(spotter)
    events = [*detector(as_float(sound)), *detector.flush()]
    assert [event.word for event in events] == ["lamp", "door", "lamp"]

    def heard(given: bytes) -> list[list[str]]:
        done = subprocess.run([program], input=given, capture_output=True, check=True)
        return [line.split() for line in done.stdout.decode().splitlines()]

    found = heard(wav(sound))
    assert heard(sound.tobytes()) == found
    for (times, word, score, _, sure), event in zip(found, events, strict=True):
        assert word == event.word
        assert float(score) == pytest.approx(event.score, abs=0.05)
        assert int(sure) == pytest.approx(event.confidence, abs=10)
        start, end = map(float, times.split("-"))
        assert start == pytest.approx(event.start_s, abs=0.02)
        assert end == pytest.approx(event.end_s, abs=0.02)
    assert heard(b"") == []
    # What comes behind the samples is no sound; of a stream nobody knows how many there will be.
    whole = wav(sound)
    size, more = whole.index(b"data") + 4, sound.tobytes()
    assert heard(whole + b"LIST" + len(more).to_bytes(4, "little") + more) == found
    for unknown in (b"\0\0\0\0", b"\xff\xff\xff\xff"):
        assert heard(whole[:size] + unknown + whole[size + 4 :]) == found
    folder = os.open(tmp_path, os.O_RDONLY)
    done = subprocess.run([program], stdin=folder, capture_output=True, timeout=60)
    os.close(folder)
    assert done.returncode == 1 and b"standard input" in done.stderr
    for wrong in (wav(sound, 8_000), wav(np.stack([sound, sound], axis=1)), wav(sound)[:30]):
        done = subprocess.run([program], input=wrong, capture_output=True)
        assert done.returncode == 1 and b"expected 16-bit mono WAV at 16 kHz" in done.stderr


def test_make_without_a_model_says_what_to_do(tmp_path):
    if shutil.which("make") is None:
        pytest.skip("needs make: apt install make")
    shutil.copytree(EXAMPLES / "c", tmp_path / "c")
    done = subprocess.run(["make", "-C", tmp_path / "c"], capture_output=True, text=True)
    assert done.returncode != 0
    assert "home.tap does not exist. Teach it with: tapword learn home.tap" in done.stdout


JAVA = """
import java.io.*;
import java.nio.*;
import java.util.*;
import org.tapword.Spotter;

class Try {
    static short[] read(DataInputStream in) throws IOException {
        short[] samples = new short[in.readInt()];
        for (int i = 0; i < samples.length; i++) samples[i] = in.readShort();
        return samples;
    }

    static String refused(Runnable call) {
        try { call.run(); return "taken"; } catch (RuntimeException e) { return e.getMessage(); }
    }

    public static void main(String[] arguments) throws IOException {
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in));
        short[] take = read(in), stream = read(in);
        byte[] state;
        try (Spotter spotter = new Spotter()) {
            spotter.learn(take, "timer");
            System.out.println(spotter.predict(take) + " " + spotter.predict(new short[20000]));
            for (Spotter.Event event : spotter.push(stream)) {
                boolean sure = event.confidence() >= 50;
                System.out.println(event.word() + " " + sure + " " + event.startSeconds());
            }
            System.out.println(refused(() -> spotter.learn(take, "")));
            System.out.println(refused(() -> spotter.learn(new short[80001], "long")));
            System.out.println(refused(() -> spotter.forget("nobody")));
            System.out.println(refused(() -> spotter.load(new byte[9])));
            spotter.forget("timer");
            state = spotter.save();
        }
        Spotter closed = new Spotter();
        closed.load(state);
        System.out.println(closed.reject(take));
        closed.close();
        closed.close();
        System.out.println(refused(() -> closed.predict(take)));
    }
}
"""


def test_the_library_for_java_learns_and_hears(header, tmp_path):
    javac = shutil.which("javac")
    if javac is None:
        pytest.skip("needs a JDK: apt install default-jdk-headless")
    include = Path(javac).resolve().parents[1] / "include"
    example = EXAMPLES / "android"
    (tmp_path / "Try.java").write_text(JAVA)
    sources = [example / "java" / "org" / "tapword" / "Spotter.java", tmp_path / "Try.java"]
    subprocess.run([javac, "-Xlint:all", "-Werror", "-d", tmp_path, *sources], check=True)
    folders = [f"-I{header.parent}", f"-I{include}", f"-I{include / 'linux'}"]
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-O2", "-shared", "-fPIC"]
    library = tmp_path / "libtapword.so"
    native = example / "tapword_jni.c"
    subprocess.run(["gcc", *flags, *folders, native, "-lm", "-o", library], check=True)
    content = b""
    for sound in (np.round(clips_of("timer", 9, 10)[0] * 32767).astype(">i2"), stream()):
        content += len(sound).to_bytes(4, "big") + sound.astype(">i2").tobytes()
    command = [javac.removesuffix("c"), f"-Djava.library.path={tmp_path}", "-cp", tmp_path, "Try"]
    done = subprocess.run(command, input=content, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    lines = done.stdout.decode().splitlines()
    assert lines[0] == "timer null"
    events = [line.split() for line in lines[1:-6]]
    assert [event[0] for event in events] == ["lamp", "door", "timer", "lamp"]
    assert all(sure == "true" and float(at) > 0.5 for _, sure, at in events)
    codes = [line.partition(":")[0].removeprefix("TAPWORD_") for line in lines[-6:-2]]
    assert codes == ["BAD_WORD", "BAD_AUDIO", "UNKNOWN", "BAD_STATE"]
    assert lines[-2] in WORDS and lines[-1] == "the spotter is closed"

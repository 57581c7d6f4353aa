"""The core in a web page: the package, the page to try it, and the example, in a real browser."""

import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
import soundfile

import tapword
from tapword import Detector, Spotter
from tapword.assets import CLIPS
from tapword.audio import files
from tapword.audio.endpoint import Endpointer, examine
from tapword.export.c import state as states
from tapword.export.c.reduced import for_device
from tapword.spotter.session import LATEST, TeachSession
from tapword.spotter.takes import find_takes
from tapword.spotter.thresholds import confidence
from tests.browser import PHONE, SPEAKING, VOICE, launched, speak
from tests.conftest import ROOT
from tests.sounds import TAUGHT, clip, in_a_row, speech
from tests.web.conftest import stop

WORDS = ("lamp", "kitchen", "music")


@pytest.fixture(scope="module")
def core(site):
    return site / "try" / "core"


@pytest.fixture(scope="module")
def microphone(tmp_path_factory):
    return tmp_path_factory.mktemp("microphone") / "sound.wav"


@pytest.fixture(scope="module")
def browser(microphone):
    with launched(microphone) as browser:
        yield browser


@pytest.fixture
def open_page(browser, server):
    """Open a page of the site; every error it met, and every request elsewhere, fails the test."""
    contexts, errors = [], []
    origin = f"http://127.0.0.1:{server.server_port}"

    def open_page(path="try/", context=None, **options):
        if context is None:
            context = browser.new_context(
                permissions=["microphone"], reduced_motion="reduce", locale="en-GB", **options
            )
            context.set_default_timeout(30_000)
            context.on("request", note)
            contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda text: text.type == "error" and errors.append(text.text))
        page.goto(f"{origin}/{path}")
        if path == "try/":
            page.locator("#model:not(:empty)").wait_for()
        return page

    def note(request):
        if not request.url.startswith((origin, "blob:", "data:")):
            errors.append(f"asked for {request.url}")

    yield open_page
    for context in contexts:
        context.close()
    assert not errors


def clips(word, count=3):
    return sorted((CLIPS / word).glob("flite-*.ogg"))[:count]


def teach_files(page, word, paths):
    page.locator("#word").fill(word)
    page.locator("#files").set_input_files(paths)
    # They are named by their voices.
    page.locator("#sort-teach").click()
    page.locator("#file-list li", has_text=f"of “{word}”.").last.wait_for()


def taught(page):
    """Word -> takes, as the page lists them."""
    rows = page.locator("#word-list li")
    return {
        row.locator(".name").inner_text(): int(row.locator(".soft").first.inner_text().split()[0])
        for row in rows.all()
    }


# The package.


def node(script, folder, *given):
    """Run a module in node; what it prints is JSON."""
    if shutil.which("node") is None:
        pytest.skip("needs node: apt install nodejs")
    path = folder / "test.mjs"
    path.write_text(script)
    done = subprocess.run(["node", path, *map(str, given)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def write_samples(path, sounds):
    """Write sounds (n,) float32 one after the other, and their lengths as JSON beside them."""
    np.concatenate(sounds).astype("<f4").tofile(path)
    path.with_suffix(".json").write_text(json.dumps([len(sound) for sound in sounds]))
    return path


READ = """
import fs from 'node:fs';
export function read(path) {
  const all = new Float32Array(fs.readFileSync(path).buffer);
  let at = 0;
  return JSON.parse(fs.readFileSync(path.replace(/[.][^.]*$/, '.json')))
    .map(n => all.subarray(at, at += n));
}
"""


def test_every_method_of_the_package(core, tmp_path):
    """In node, without a Worker: teach, ask, forget, rename, save and load; refusals have names."""
    (tmp_path / "read.mjs").write_text(READ)
    sounds = [files.read(path) for word in WORDS for path in clips(word, 4)]
    found = node(
        """
        import fs from 'node:fs';
        import {read} from './read.mjs';
        const {Tapword, TapwordError} = await import(`${process.argv[2]}/index.js`);
        const wasm = fs.readFileSync(`${process.argv[2]}/tapword.wasm`);
        const words = ['lamp', 'kitchen', 'cafe\\u0301'], sounds = read(process.argv[3]);
        // The one beside index.js.
        const spotter = await Tapword.load();
        const first = await spotter.predict(sounds[0]);
        for (const [k, word] of words.entries()) {
          for (const take of [0, 1, 2]) await spotter.learn(sounds[4 * k + take], word);
        }
        const whole = Int16Array.from(sounds[3], x => Math.round(x * 32768));
        const heard = [await spotter.predict(whole)];
        for (const k of [1, 2]) heard.push(await spotter.predict(sounds[4 * k + 3]));
        const rejected = await spotter.reject(sounds[3]);
        const known = await spotter.words(), bytes = await spotter.save();
        await spotter.rename('lamp', 'light');
        const renamed = await spotter.words();
        await spotter.setSensitivity('light', 0.75);
        const sensed = (await spotter.words())[0];
        await spotter.forget('light');
        const left = await spotter.words();
        const other = await Tapword.load(wasm);
        await other.load(bytes);
        const again = await other.words();
        const same = Buffer.compare(Buffer.from(await other.save()), Buffer.from(bytes)) === 0;
        const damaged = bytes.slice();
        damaged[damaged.length - 30] ^= 1;
        const codes = [];
        for (const bad of [
          () => other.forget('gone'), () => other.learn(sounds[0], ' '),
          () => other.learn(sounds[0], 'x'.repeat(300)),
          () => other.learn(new Float32Array(0), 'x'),
          () => other.learn(new Float32Array(16000).fill(NaN), 'x'),
          () => other.learn(new Float32Array(100000), 'x'), () => other.load(damaged),
          () => other.load(bytes.subarray(0, 20)), () => other.load(new Uint8Array(5_000_000)),
          () => other.rename('lamp', 'kitchen'), () => other.rename('gone', 'y'),
          () => other.setSensitivity('lamp', 2),
        ]) {
          const error = await bad().catch(error => error);
          codes.push([error instanceof TapwordError, error.code, error.message]);
        }
        for (const {word} of again) await other.forget(word);
        const none = await other.predict(sounds[0]);
        await other.load(bytes);
        const untouched = JSON.stringify(await other.words()) === JSON.stringify(again);
        other.close();
        const closed = await other.words().catch(error => error.message);
        console.log(JSON.stringify({
          first, none, closed, heard, rejected, known, renamed, sensed, left, again, same, codes,
          untouched,
        }));
        """,
        tmp_path,
        core,
        write_samples(tmp_path / "sounds.f32", sounds),
    )
    assert found["first"] == found["none"] == {"word": None, "score": None, "confidence": None}
    assert "closed" in found["closed"]
    assert [answer["word"] for answer in found["heard"]] == ["lamp", "kitchen", "café"]
    assert found["rejected"] == "lamp"
    lamp, *others = found["known"]
    assert (lamp["word"], lamp["count"], lamp["negatives"]) == ("lamp", 3, 1)
    assert lamp["sensitivity"] == 0.5 and -1 < lamp["threshold"] < 1
    assert [word["word"] for word in others] == ["kitchen", "café"]
    assert found["renamed"] == [lamp | {"word": "light"}, *others]
    assert found["sensed"]["sensitivity"] == 0.75
    assert found["sensed"]["threshold"] < lamp["threshold"]
    assert [word["word"] for word in found["left"]] == ["kitchen", "café"]
    assert found["again"] == found["known"] and found["same"] and found["untouched"]
    for refused, code, sentence in found["codes"]:
        assert refused and code.startswith("TAPWORD_"), (code, sentence)
        assert sentence and "TAPWORD" not in sentence
    assert found["codes"][0][1] == "TAPWORD_UNKNOWN"
    assert found["codes"][1][1] == found["codes"][2][1] == "TAPWORD_BAD_WORD"
    assert found["codes"][3][1] == found["codes"][4][1] == "TAPWORD_BAD_AUDIO"
    assert found["codes"][9][1] == "TAPWORD_TAKEN"


def test_a_stream_reaches_the_core_in_its_order(core, tmp_path):
    """Also after sound was lost; whoever listened before is stopped."""
    found = node(
        """
        const {Tapword} = await import(`${process.argv[2]}/index.js`);
        const ports = [];
        globalThis.AudioNode = class {
          context = {audioWorklet: {addModule: async () => {}}};
          connect() {}
          disconnect() { this.ended = true; }
        };
        globalThis.AudioWorkletNode = class { constructor() { ports.push(this.port = {}); } };
        const asked = [], answers = [];
        const spotter = new Tapword((method, what) => {
          if (method === 'startStream') return Promise.resolve();
          asked.push(method === 'gap' ? ['gap', what] : [method, what[0]]);
          return new Promise(yes => answers.push(yes));
        }, () => {});
        const source = new AudioNode();
        const first = await spotter.listen(source, () => {});
        const say = (port, n) => port.onmessage?.({data: Int16Array.of(n, n)});
        const turn = () => new Promise(yes => setTimeout(yes));
        for (let n = 0; n < 27; n++) say(ports[0], n);
        answers.splice(0).forEach(yes => yes([]));
        await turn();
        say(ports[0], 27);
        say(ports[0], 28);
        await turn();
        const lossy = asked.slice(25);
        await spotter.listen(new AudioNode(), () => {});
        await first.stop();
        say(ports[0], 29);
        say(ports[1], 30);
        console.log(JSON.stringify({lossy, after: asked.slice(28), ended: source.ended}));
        """,
        tmp_path,
        core,
    )
    assert found["lossy"] == [["gap", 4], ["push", 27], ["push", 28]]
    assert found["after"] == [["push", 30]] and found["ended"]


def test_what_fails_is_let_go_of(core, tmp_path):
    """A worker that does not open or that breaks, a context whose worklet cannot be loaded."""
    found = node(
        """
        import fs from 'node:fs';
        const {Tapword, record} = await import(`${process.argv[2]}/index.js`);
        const wasm = fs.readFileSync(`${process.argv[2]}/tapword.wasm`);
        const workers = [], why = promise => promise.then(() => null, error => error.message);
        let refuses = true;
        globalThis.Worker = class {
          ended = false;
          constructor() { workers.push(this); }
          terminate() { this.ended = true; }
          postMessage({id, method}) {
            if (method !== 'open') return;
            const error = refuses ? {message: 'no room'} : undefined;
            setTimeout(() => this.onmessage({data: {id, error}}));
          }
        };
        const opened = await why(Tapword.load(wasm));
        refuses = false;
        const spotter = await Tapword.load(wasm), other = await Tapword.load(wasm);
        const during = why(spotter.words());
        workers[1].onerror({message: 'broke'});
        other.close();
        const said = [opened, await during, await why(spotter.words()), await why(other.words())];
        let closed = false;
        globalThis.AudioNode = class {};
        globalThis.AudioContext = class {
          audioWorklet = {addModule: async () => { throw new Error('no worklet'); }};
          createMediaStreamSource() { return {disconnect() {}}; }
          async close() { closed = true; }
        };
        said.push(await why(record({}, 1)));
        console.log(JSON.stringify({said, ended: workers.map(({ended}) => ended), closed}));
        """,
        tmp_path,
        core,
    )
    *broken, closed, worklet = found["said"]
    assert broken == ["no room", "broke", "broke"]
    assert "closed" in closed and worklet == "no worklet"
    assert found["ended"] == [True, True, True] and found["closed"]


def test_a_folder_of_ones_own_is_not_emptied(site, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    command = [sys.executable, ROOT / "web" / "build.py", "try", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode != 0 and "name a new folder" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_it_hears_what_python_hears(core, tmp_path):
    """The same clips taught: the scores of others but for 8 bits, and the events of a stream."""
    (tmp_path / "read.mjs").write_text(READ)
    taught = [files.read(path) for word in WORDS for path in clips(word, 3)]
    asked = [files.read(clips(word, 4)[3]) for word in WORDS]
    pause = np.zeros(20_000, dtype=np.float32)
    stream = np.concatenate([part for clip in asked for part in (pause, clip)] + [pause])
    stream += 5e-4 * np.random.default_rng(0).standard_normal(len(stream), dtype=np.float32)
    found = node(
        """
        import fs from 'node:fs';
        import {read} from './read.mjs';
        const {Tapword} = await import(`${process.argv[2]}/index.js`);
        const spotter = await Tapword.load(fs.readFileSync(`${process.argv[2]}/tapword.wasm`));
        const sounds = read(process.argv[3]), words = process.argv.slice(4);
        for (const [k, sound] of sounds.slice(0, 9).entries()) {
          await spotter.learn(sound, words[Math.floor(k / 3)]);
        }
        const scores = [], events = [], answers = [], stream = sounds.at(-1);
        for (const sound of sounds.slice(9, 12)) scores.push(await spotter.scores(sound));
        // At several sensitivities, so that some words count as said and some do not.
        for (const value of [0, 0.5, 1]) {
          await spotter.setSensitivity(null, value);
          const words = await spotter.words();
          for (const sound of sounds.slice(0, 12)) {
            answers.push([await spotter.predict(sound), await spotter.scores(sound), words]);
          }
        }
        await spotter.setSensitivity(null, 0.5);
        await spotter.startStream();
        for (let at = 0; at < stream.length; at += 1280) {
          events.push(...await spotter.push(stream.subarray(at, at + 1280)));
        }
        events.push(...await spotter.flush());
        console.log(JSON.stringify({scores, events, answers, words: await spotter.words()}));
        """,
        tmp_path,
        core,
        write_samples(tmp_path / "sounds.f32", [*taught, *asked, stream]),
        *WORDS,
    )
    whole = Spotter("ear_s")
    whole.learn_many(taught, [word for word in WORDS for _ in range(3)])
    spotter = for_device(whole)
    scored = spotter.score_encoded(spotter.encode(asked))
    for ours, theirs in zip(found["scores"], scored, strict=True):
        assert ours == pytest.approx(theirs.words, abs=0.05)
    thresholds = {word["word"]: word["threshold"] for word in found["words"]}
    assert thresholds == pytest.approx(spotter.thresholds(), abs=0.05)
    detector = Detector(spotter)
    events = [*detector(stream), *detector.flush()]
    assert [event.word for event in events] == list(WORDS)
    assert [event["word"] for event in found["events"]] == list(WORDS)
    for event, heard in zip(events, found["events"], strict=True):
        assert heard["score"] == pytest.approx(event.score, abs=0.05)
        assert (heard["start"], heard["end"]) == pytest.approx((event.start_s, event.end_s))
    # It is as sure as Python at the same score, and of its own threshold.
    width = spotter.scorer.confidence_width
    for answer, scores, words in found["answers"]:
        word = answer["word"] or max(scores, key=scores.get)
        [limit] = [one["threshold"] for one in words if one["word"] == word]
        assert answer["confidence"] == confidence(scores[word], limit, width)
        assert (answer["confidence"] >= 50) == (answer["word"] is not None)
    for event in found["events"]:
        assert event["confidence"] == confidence(event["score"], thresholds[event["word"]], width)


def test_the_package_is_laid_out_for_npm(core):
    about = json.loads((core / "package.json").read_text())
    assert all((core / name).exists() for name in [*about["files"], "README.md", "LICENSE"])
    assert about["version"] == tapword.__version__
    assert (core / "tapword.wasm").stat().st_size < 1_500_000
    text = (core / "index.js").read_text()
    methods = set(re.findall(r"^  (?:static )?(?:async )?(\w+)\(", text, re.MULTILINE))
    types = (core / "index.d.ts").read_text()
    declared = types[types.index("class Tapword {") :]
    assert methods - {"constructor", "if", "for"} <= set(re.findall(r"(\w+)\(", declared))


def test_takes_are_checked_as_by_the_studio(core, tmp_path):
    """In WebAssembly, too: the takes of a lesson, with codes, severities and parameters."""
    (tmp_path / "read.mjs").write_text(READ)
    quiet = np.zeros(12_000, dtype=np.float32)
    noise = 0.1 * np.random.default_rng(0).standard_normal(20_000, dtype=np.float32)
    words = [word for word in WORDS for _ in range(3)] + ["light"] * 4 + ["music"]
    said = [word for word in WORDS for _ in range(3)] + ["lamp"] * 4 + ["stop"]
    paths = [sorted((CLIPS / word).glob("*.ogg"))[at] for at, word in enumerate(said)]
    sounds = list(map(files.read, paths))
    sounds = [np.concatenate([quiet, sound, quiet]) for sound in sounds]
    sounds += [noise, quiet, sounds[0][: 12_000 + 5_000], np.tile(sounds[0][12_000:-12_000], 9)]
    words += ["lamp"] * 4
    sounds = [np.round(sound[:160_000] * 32_768).clip(-32_768, 32_767) / 32_768 for sound in sounds]
    sounds = [sound.astype(np.float32) for sound in sounds]
    found = node(
        """
        import {read} from './read.mjs';
        const {Tapword} = await import(`${process.argv[2]}/index.js`);
        const words = process.argv.slice(4), spotter = await Tapword.load(), answers = [];
        for (const [k, sound] of read(process.argv[3]).entries()) {
          const {audio, ...take} = await spotter.examine(sound), states = [];
          await spotter.startRecording();
          for (let at = 0; at < sound.length; at += 1280) {
            states.push(await spotter.pushRecording(sound.subarray(at, at + 1280)));
          }
          const answer = {...take, length: audio.length, states};
          if (audio.length && !take.issue) {
            answer.issues = await spotter.check(audio, words[k]);
            answer.review = await spotter.accept(words[k]);
            await spotter.learn(audio, words[k], {anyway: true});
          }
          answers.push(answer);
        }
        console.log(JSON.stringify(answers));
        """,
        tmp_path,
        core,
        write_samples(tmp_path / "sounds.f32", sounds),
        *words,
    )
    spotter, session, codes = for_device(states.new("diagonal")), None, set()
    for sound, word, answer in zip(sounds, words, found, strict=True):
        take, live = examine(sound), Endpointer()
        assert answer["issue"] == (state_of(take.issue) if take.issue else None)
        assert answer["length"] == len(take.audio)
        edges = [answer[name] for name in ("start_s", "end_s", "level_db", "snr_db")]
        wanted = [take.start_s, take.end_s, take.level_db, take.snr_db]
        np.testing.assert_allclose(edges, wanted, atol=1e-6)
        chunks = np.split(sound, range(1280, len(sound), 1280))
        assert answer["states"] == [live.push(chunk) for chunk in chunks]
        if take.issue is not None:
            codes.add(take.issue.code)
            continue
        if session is None or any(clip.word != word for clip in session.accepted):
            session = TeachSession(states.load("copy", states.dump(spotter)), LATEST)
        session.follow(spotter)
        checked = session.check(take.audio, word)
        session.accept(checked)
        for name, issues in (("issues", checked.issues), ("review", session.review())):
            assert answer[name] == [state_of(issue) for issue in issues]
            codes |= {issue.code for issue in issues}
        spotter.learn(take.audio, word)
    assert codes >= {"no_speech", "cut_off", "too_long", "other_word", "close_word"}


def test_takes_of_a_file_are_found_as_by_the_studio(core, tmp_path):
    (tmp_path / "read.mjs").write_text(READ)
    lamps, music = [speech("lamp", voice) for voice in TAUGHT[:4]], speech("music", TAUGHT[0])
    sounds = [in_a_row(lamps[:2], 0.6), in_a_row([*lamps, music], 8), in_a_row([music], 2)]
    sounds.append(np.zeros(61 * 16_000 + 1, dtype=np.float32))
    found = node(
        """
        import {read} from './read.mjs';
        const {Tapword} = await import(`${process.argv[2]}/index.js`);
        const spotter = await Tapword.load(), answers = [];
        for (const sound of read(process.argv[3])) {
          const found = await spotter.findTakes(sound).catch(({code}) => [{audio: [], code}]);
          answers.push(found.map(({audio, ...rest}) => ({...rest, samples: audio.length})));
        }
        console.log(JSON.stringify(answers));
        """,
        tmp_path,
        core,
        write_samples(tmp_path / "sounds.f32", sounds),
    )
    encoder = for_device(states.new("diagonal")).encoder
    assert found[:3] == [
        [
            {
                "first": one.first,
                "start_s": one.start_s,
                "is_take": one.is_take,
                "samples": len(one.audio),
            }
            for one in find_takes(encoder, sound)
        ]
        for sound in sounds[:3]
    ]
    assert [len(takes) for takes in found[:3]] == [2, 5, 0]
    assert found[3] == [{"code": "TAPWORD_BAD_AUDIO", "samples": 0}]


def state_of(issue):
    return {"code": issue.code, "severity": issue.severity, "params": pytest.approx(issue.params)}


# The page.


def test_teach_from_files_listen_reload(microphone, open_page):
    page = open_page()
    for word in WORDS:
        teach_files(page, word, clips(word))
    known = taught(page)
    assert list(known) == list(WORDS) and min(known.values()) > 0
    speak(microphone, ["kitchen"], gap_s=1.5)
    page.locator("#listen-button").click()
    event = page.locator("#events li").last
    event.wait_for()
    assert event.locator(".heard").inner_text() == "kitchen"
    # The time of day as the browser's country has it, here without AM and PM.
    assert re.search(r"\d\d:\d\d:\d\d, ", event.inner_text())
    # It can be heard again, and put right.
    event.get_by_role("button", name="Not one of my words").click()
    event.locator(".verdict.good", has_text="not one of your words").wait_for()
    event.get_by_role("button", name="Undo the correction").click()
    event.get_by_text("Undone.").wait_for()
    page.locator("#listen-button").click()
    assert page.locator("#listen-button").get_attribute("aria-pressed") == "false"
    page.reload()
    page.locator("#word-list li").first.wait_for()
    assert taught(page) == known


def test_a_file_with_several_takes_teaches_each(open_page, tmp_path):
    lamps, music = [speech("lamp", voice) for voice in TAUGHT[:4]], speech("music", TAUGHT[0])
    sounds = {"lamp": in_a_row([*lamps, music], 2), "long": in_a_row([lamps[0], music], 5)}
    for name, sound in sounds.items():
        assert len(sound) > 10 * 16_000
        soundfile.write(tmp_path / f"{name}.wav", sound, 16_000)
    page = open_page()
    page.locator("#word").fill("lamp")
    page.locator("#files").set_input_files(tmp_path / "lamp.wav")
    page.locator("#file-list li", has_text="Taught 4 recordings of “lamp”").wait_for()
    said = page.locator("#file-list").inner_text()
    assert "It contains 4 takes; each is taught." in said and "lamp.wav at 2.0 s" in said
    assert taught(page) == {"lamp": 4}
    # The one that is unlike the others waits.
    unlike = page.locator("#file-list li", has_text="It sounds unlike the other takes of “lamp”.")
    unlike.get_by_role("button").click()
    page.locator("#word-list li", has_text="5 takes").wait_for()
    page.locator("#files").set_input_files(tmp_path / "long.wav")
    page.locator("#sort-teach").click()
    page.locator("#file-list li", has_text="without several takes of one word").wait_for()
    assert taught(page) == {"lamp": 5}


def test_teach_by_voice(microphone, open_page):
    """With the keyboard alone, five takes one after the other; each can be taken back."""
    speak(microphone, ["lamp"])
    page = open_page(viewport=PHONE)
    page.locator("#word").focus()
    page.keyboard.type("lamp")
    for _ in range(5):
        page.keyboard.press("Enter")
        page.locator("#record.recording:focus").wait_for()
        page.locator("#record.idle:focus, #again:focus").first.wait_for()
        if page.locator("#record.idle").is_visible():
            break
    assert "“lamp” is ready: 5 takes" in page.locator("#verdict").inner_text()
    assert page.get_by_role("button", name="Try it now").is_visible()
    assert page.locator("#take-list canvas").count() == 5
    page.get_by_role("button", name="Remove take 2").click()
    page.locator("#undo[aria-label='Undo: removed a take of “lamp”']").wait_for()
    assert taught(page) == {"lamp": 4}
    page.get_by_label("Sensitivity: lamp").fill("0.7")
    page.locator("#undo[aria-label='Undo: sensitivity of “lamp”']").click()
    page.locator("#undo[aria-label='Undo: removed a take of “lamp”']").wait_for()
    page.get_by_role("button", name="Rename: lamp").click()
    page.get_by_label("New name").fill("light")
    page.keyboard.press("Enter")
    page.locator("#undo[aria-label='Undo: renamed “lamp” to “light”']").wait_for()
    page.get_by_role("button", name="Forget: light").click()
    assert "You can undo this" in page.locator("#dialog-text").inner_text()
    page.get_by_role("button", name="Forget", exact=True).click()
    page.get_by_text("No words yet").wait_for()
    page.locator("#undo").click()
    page.locator("#word-list .name", has_text="light").wait_for()
    page.locator("#undo").click()
    page.locator("#word-list .name", has_text="lamp").wait_for()
    page.locator("#undo").click()
    page.locator("#word-list li", has_text="lamp5 takes").wait_for()
    page.locator("#undo").click()
    page.locator("#word-list li", has_text="lamp4 takes").wait_for()


def test_a_doubtful_missed_word_is_asked_about(open_page):
    page = open_page()
    for word in WORDS[:2]:
        teach_files(page, word, clips(word))
    known = taught(page)
    page.evaluate(SPEAKING)
    page.locator("#listen-button").click()
    page.locator("#listen-button.live").wait_for()
    sound = in_a_row([clip("kitchen", VOICE)], 1.5)
    page.evaluate("samples => speak(samples)", (32_767 * sound).astype(int).tolist())
    page.locator("#events li", has_text="kitchen").wait_for()
    found = page.locator("#missed-found")
    for answer, takes in (("Do not learn", 0), ("Learn as “lamp”", 1)):
        page.locator("#missed-word").select_option("lamp")
        page.locator("#missed-button").click()
        page.locator("#missed-status", has_text="Not learned yet.").wait_for()
        assert found.locator("canvas").is_visible()
        found.get_by_role("button", name=answer).click()
        page.locator("#missed-status", has_text=re.compile("Nothing|another take")).wait_for()
        assert taught(page) == known | {"lamp": known["lamp"] + takes}
    found.get_by_role("button", name="Undo").click()
    page.locator("#missed-status", has_text="Undone.").wait_for()
    assert taught(page) == known


def test_a_file_saved_is_a_file_opened(open_page, tmp_path, run):
    """In Python and, by way of it, in another browser; what is damaged changes nothing."""
    page = open_page()
    for word in WORDS[:2]:
        teach_files(page, word, clips(word, 2))
    known = taught(page)
    with page.expect_download() as download:
        page.get_by_role("link", name="Save the model").click()
    saved = tmp_path / "words.bin"
    download.value.save_as(saved)
    home, back = tmp_path / "home.tap", tmp_path / "back.bin"
    assert run("import", saved, home)[0] == 0
    assert tapword.load(home).words == known
    assert run("export", home, back)[0] == 0
    other = open_page()
    other.locator("#model-file").set_input_files(back)
    other.get_by_role("button", name="Use file").click()
    other.locator("#word-list li").first.wait_for()
    assert taught(other) == known
    other.locator("#model-file").set_input_files(saved)
    asked = other.locator("#dialog-text", has_text="in this browser").inner_text()
    assert asked.startswith("It contains 2 words: lamp, kitchen. They replace the 2 words")
    other.get_by_role("button", name="Cancel").click()
    damaged = bytearray(saved.read_bytes())
    damaged[-30] ^= 1
    (tmp_path / "damaged.bin").write_bytes(damaged)
    # A model whose covariance is kept in full has other parts than the page.
    full = Spotter("ear_s")
    full.learn(clips("lamp")[0], "lamp")
    full.save(tmp_path / "full.tap")
    assert run("export", tmp_path / "full.tap", tmp_path / "full.bin", "--exact")[0] == 0
    for bad, said in (
        (tmp_path / "damaged.bin", "This is not a file of words, or it is damaged."),
        (clips("lamp")[0], "This is not a file of words, or it is damaged."),
        (tmp_path / "full.bin", "This file is from another model"),
    ):
        other.locator("#model-file").set_input_files(bad)
        other.locator("#dialog-title", has_text="That did not work").wait_for()
        assert said in other.locator("#dialog-text").inner_text()
        other.get_by_role("button", name="OK").click()
    assert taught(other) == known


def test_words_of_another_version_are_not_lost(open_page, tmp_path):
    page = open_page()
    page.evaluate("import('./store.js').then(store => store.write(new Uint8Array([1, 2, 3])))")
    page.reload()
    problem = page.locator("#problem", has_text="cannot be read")
    problem.wait_for()
    # Taught in another tab, whose words take their place: both still offer the words before.
    other = open_page(context=page.context)
    teach_files(other, "kitchen", clips("kitchen", 2))
    other.locator("#problem", has_text="new ones replaced them").wait_for()
    problem = page.locator("#problem", has_text="new ones replaced them")
    problem.wait_for()
    with page.expect_download() as download:
        problem.get_by_role("button", name="Save the model").click()
    download.value.save_as(tmp_path / "before.bin")
    assert (tmp_path / "before.bin").read_bytes() == bytes([1, 2, 3])
    problem.wait_for(state="hidden")
    teach_files(page, "lamp", clips("lamp", 2))
    assert not problem.is_visible()
    page.reload()
    page.locator("#word-list li", has_text="lamp").wait_for()
    assert not page.locator("#problem").is_visible()


def test_what_is_not_kept_is_told_of(open_page):
    """Where a write fails at its very end, as for want of room."""
    page = open_page()
    page.evaluate(
        """() => {
          const {put} = IDBObjectStore.prototype;
          IDBObjectStore.prototype.put = function (...given) {
            const request = put.apply(this, given);
            request.addEventListener('success', () => this.transaction.abort());
            return request;
          };
        }"""
    )
    teach_files(page, "lamp", clips("lamp", 2))
    page.locator("#problem", has_text="does not store the words").wait_for()


def test_what_is_asked_for_while_the_page_loads_waits_for_it(open_page):
    said = open_page().evaluate(
        """async () => {
          const api = await import('./api.js?anew');
          return api.post('api/undo', {}).catch(error => error.message);
        }"""
    )
    assert "nothing to undo" in said


def test_two_tabs_show_the_same_words(open_page):
    page = open_page()
    other = open_page(context=page.context)
    teach_files(page, "lamp", clips("lamp", 2))
    other.locator("#word-list li").first.wait_for()
    assert taught(other) == taught(page)


def test_without_a_network(open_page, server):
    """Once it was open, the page needs its server no more."""
    page = open_page()
    teach_files(page, "lamp", clips("lamp", 2))
    page.evaluate("navigator.serviceWorker.ready")
    page.wait_for_function("() => navigator.serviceWorker.controller")
    known = taught(page)
    stop(server)
    page.reload()
    page.locator("#word-list li").first.wait_for()
    assert taught(page) == known


@pytest.mark.parametrize("locale", ["de-DE", "fr-FR"])
def test_it_speaks_the_browsers_language(browser, server, locale):
    context = browser.new_context(locale=locale, viewport=PHONE)
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{server.server_port}/try/")
    page.locator("#model:not(:empty)").wait_for()
    assert page.locator("html").get_attribute("lang") == locale[:2]
    text = page.locator("body").inner_text()
    assert "undefined" not in text and "studio" not in text.lower()
    for width in (320, 390, 768, 1280):
        page.set_viewport_size({"width": width, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    context.close()


def test_people_who_cannot_see_it_can_use_it(open_page):
    rules = ROOT / "build" / "axe" / "package" / "axe.min.js"
    if not rules.exists():
        pytest.skip("needs axe-core: make axe")
    page = open_page()
    teach_files(page, "lamp", clips("lamp", 2))
    # Not by the address, which the page's own rule forbids.
    page.evaluate(rules.read_text())
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        found = page.evaluate("axe.run()")["violations"]
        assert not [(one["id"], one["nodes"][0]["html"]) for one in found]


# The package in a page, and the example.


def test_a_page_of_ones_own(open_page, site):
    """Buffers and nodes of any rate, in a Worker; refusals have their names there, too."""
    shutil.copy(clips("lamp")[0], site / "examples" / "web" / "lamp.ogg")
    page = open_page("examples/web/")
    page.locator("#heard").wait_for(state="attached")
    # Browsers make no sound, nor hear any, before somebody touched the page.
    page.locator("#word").click()
    found = page.evaluate(
        """async () => {
          const {Tapword, record} = await import('/build/web/core/index.js');
          const spotter = await Tapword.load('/build/web/core/tapword.wasm');
          const context = new AudioContext({sampleRate: 44100});
          const file = await (await fetch('./lamp.ogg')).arrayBuffer();
          const said = await context.decodeAudioData(file);
          const buffer = context.createBuffer(1, 4 * 44100, 44100);
          buffer.copyToChannel(said.getChannelData(0), 0, 44100);
          await spotter.learn(said, 'lamp');
          const play = () => {
            const source = new AudioBufferSourceNode(context, {buffer});
            source.start();
            return source;
          };
          const asked = await spotter.predict(await record(play(), 2.5));
          const {event, listening} = await new Promise((yes, no) => {
            const listening = spotter.listen(play(), event => yes({event, listening}), no);
            listening.catch(no);
          });
          await (await listening).stop();
          const refused = await spotter.forget('gone').catch(({name, code}) => [name, code]);
          const late = spotter.words();
          spotter.close();
          return {asked, event, refused, rate: context.sampleRate,
            closed: await late.then(() => false, () => true)};
        }"""
    )
    assert found["rate"] == 44_100
    assert found["asked"]["word"] == found["event"]["word"] == "lamp"
    assert 0.8 < found["event"]["start"] < found["event"]["end"] < 2.5
    assert found["refused"] == ["TapwordError", "TAPWORD_UNKNOWN"]
    assert found["closed"]


def test_the_example(microphone, open_page):
    # Whenever its recording begins, a whole word lies in it.
    speak(microphone, ["lamp"])
    page = open_page("examples/web/")
    teach = page.get_by_role("button", name="Teach")
    page.evaluate(
        """() => {
          const {mediaDevices} = navigator, lend = mediaDevices.getUserMedia.bind(mediaDevices);
          mediaDevices.getUserMedia = async () => {
            mediaDevices.getUserMedia = lend;
            throw new Error('refused');
          };
        }"""
    )
    teach.click()
    page.locator("#problem", has_text="refused").wait_for()
    teach.click()
    page.locator("#heard", has_text="lamp").wait_for()
    assert page.locator("#problem").inner_text() == ""

"""Examples, links and names in the documentation."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import nullcontext

import numpy as np
import pytest
import soundfile

import tapword
from tapword import cli
from tapword.assets import CLIPS
from tapword.audio import microphone
from tests import test_contracts
from tests.conftest import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
# Pages whose commands are run, in this order.
NEWCOMERS = ("start.md", "teaching.md", "doing.md")
FENCED = re.DOTALL | re.MULTILINE
# An entry of the navigation: its name and its page.
NAMED = r"- (.+): ([\w/]+\.md)$"


def test_the_readmes_example(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    [example] = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    taught = [
        path for word in ("lamp", "music") for path in sorted((CLIPS / word).glob("*"))[:12:2]
    ]
    new_clip = sorted((CLIPS / "lamp").glob("*.ogg"))[3]
    said, _ = soundfile.read(new_clip, dtype="float32")
    names = {
        "clips": taught,
        "words": [path.parent.name for path in taught],
        "stream": np.array_split(
            np.concatenate([np.zeros(8_000), said, np.zeros(12_000)]).astype(np.float32), 10
        ),
    }
    exec(example, names)
    word, start_s, confidence = capsys.readouterr().out.split()
    assert word == "lamp" and 0.4 < float(start_s) < 0.8 and 50 <= int(confidence) <= 100
    assert names["spotter"].words == {"lamp": 6, "music": 6}


def shown(text):
    """Return the set of printed lines, without frames and without measured digits.

    Lines have no order: a started command prints at any time.
    """
    plain = re.sub(r"[^\x00-\x7f]+", " ", re.sub(r"\d[\d,]*[.,]\d+", "0", text))
    return {" ".join(line.split()) for line in plain.splitlines() if line.strip()}


def test_a_newcomers_pages_show_what_happens(tmp_path, monkeypatch, capfd):
    """Run commands and Python, page by page, in the folder of a checkout."""
    (tmp_path / "src").symlink_to(ROOT / "src")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(microphone, "open_stream", lambda: nullcontext(recorded("stream.wav")))
    text = "".join((ROOT / "docs" / page).read_text() for page in NEWCOMERS)
    commands = []
    for language, block in re.findall(r"^```(python|console)\n(.*?)^```$", text, FENCED):
        if language == "python":
            exec(block, {})
            continue
        for command, output in re.findall(r"^\$ ((?:.*\\\n)*.*)\n([^$]*)", block, re.MULTILINE):
            capfd.readouterr()
            tell(shlex.split(command.replace("\\\n", "")), monkeypatch)
            printed, remarked = map(shown, capfd.readouterr())
            assert printed <= shown(output) <= printed | remarked, command
            commands.append(command)
    assert len(commands) > 6 and capfd.readouterr().out == "toggle the lamp\nplay\n"


def recorded(path):
    samples = soundfile.read(path, dtype="float32")[0]
    return (microphone.Chunk(chunk, False) for chunk in np.array_split(samples, 50))


def tell(arguments, monkeypatch):
    if arguments[0] != "tapword":
        subprocess.run(arguments, check=True)
        return
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert not stop.value.code


@pytest.mark.parametrize("check", test_contracts.checks("pooling"))
def test_the_pooling_of_the_guide_keeps_the_contract(check):
    text = (ROOT / "docs" / "adding_parts.md").read_text()
    [example] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names = {"__name__": "median"}
    exec(example, names)
    check(names["Median"])


def run(program, *arguments):
    """Run Python in a process of its own, where it may register commands; return its output."""
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)


def test_the_command_of_the_guide(tmp_path):
    example, line = blocks("adding_commands.md", "python")
    [shell] = blocks("adding_commands.md", "console")
    spotter = tapword.Spotter("logmel", "avg", "ncm")
    for word in ("lamp", "music"):
        spotter.learn_many(sorted((CLIPS / word).glob("flite-*_0.ogg")), [word] * 3)
    spotter.save(tmp_path / "home.tap")
    (tmp_path / "words.py").write_text(example)
    program = (
        "from tapword import cli\nfrom tapword.cli.commands import COMMANDS\n"
        f"cli.__path__.append({str(tmp_path)!r})\n"
        f"COMMANDS['Model files'] |= {{{line}}}\ncli.main()\n"
    )
    printed = run(program, "words", str(tmp_path / "home.tap"))
    assert printed == shell.partition("\n")[2]
    assert run(program, "words", str(tmp_path / "home.tap"), "--json").startswith('{\n  "lamp": 3')
    assert "List the words of MODEL" in run(program, "--help")


def test_the_threshold_rules_of_the_guide():
    mine, builtin = blocks("adding_threshold_rules.md", "python")
    assert re.fullmatch(r"\{'lamp': 0\.\d+, 'music': 0\.\d+\}\n", run(mine))
    assert re.fullmatch(r"\{'lamp': 0\.\d+\}\n", run(builtin))


def test_the_check_of_a_language_in_the_guide(tmp_path):
    if shutil.which("node") is None:
        pytest.skip("needs node: apt install nodejs")
    [script] = blocks("adding_languages.md", "javascript")
    (tmp_path / "check.mjs").write_text(script)
    studio = "src/tapword/serve/studio/static"
    folder = shutil.copytree(ROOT / studio, tmp_path / studio)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    lacking = (folder / "de.js").read_text().replace("  undo: ", "  other: ")
    (folder / "es.js").write_text(lacking)
    for language, missing in (("fr", ""), ("es", "undo\n")):
        command = ["node", "check.mjs", language]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert done.stdout == missing


def prose(page):
    """Return the text of a page without its code blocks and comments."""
    return re.sub(r"^```.*?^```$|<!-- .*? -->", "", page.read_text(), flags=FENCED)


def anchors(page):
    """Return the anchors of a page's headings, on GitHub and on the site."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for link, picture in re.findall(r"\]\(([^):\s]+)\)|<img src=\"([^\":]+)\"", prose(page)):
        path, _, anchor = (link or picture).partition("#")
        target = page.parent / path if path else page
        assert target.exists(), f"{page.name} links to {path}"
        assert not anchor or anchor in anchors(target), f"{page.name} links to {path}#{anchor}"


def test_what_make_docs_and_the_microphone_need_is_named():
    needed = ("clang", "lld", "wasi-libc", "libportaudio2")
    for name in ("README.md", "CONTRIBUTING.md"):
        text = (ROOT / name).read_text()
        assert all(package in text for package in needed), name
    assert "`pip install build`" in (ROOT / "README.md").read_text()


def test_the_demo_page_is_linked_where_it_is_a_page():
    """On GitHub there are only its sources; the hooks of the site enable what is in a comment."""
    text = (ROOT / "docs" / "web.md").read_text()
    assert "](../site/try" not in text
    [link] = re.findall(r"<!-- (.+try/index.html.+) -->", text)
    hooks = (ROOT / "docs" / "hooks.py").read_text()
    [pattern] = re.findall(r'ON_SITE = re.compile\(r"(.+)"\)', hooks)
    assert re.sub(pattern, r"\1", text).count(f"\n{link}\n") == 1


def test_the_site_has_every_page_once():
    """Pages at the root are in lower case there; the index replaces the README."""
    nav = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    named = re.findall(r": ([\w/]+\.md)$", nav, re.MULTILINE)
    pages = [path.relative_to(ROOT).as_posix().removeprefix("docs/") for path in PAGES]
    pages = [page if "/" in page else page.lower() for page in pages if page != "README.md"]
    assert sorted(named) == sorted(pages)


def test_a_page_has_one_name():
    """Navigation, title, and the links in the README and the overview all use the same name."""
    nav = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    names = {
        page: name.strip('"') for name, page in re.findall(r"- (.+): ([\w/]+\.md)$", nav, re.M)
    }
    for page in PAGES:
        path = page.relative_to(ROOT).as_posix().removeprefix("docs/")
        path = path if "/" in path else path.lower()
        if path != "readme.md":
            assert page.read_text().startswith(f"# {names[path]}\n"), path
    for name in ("README.md", "docs/index.md"):
        table = "".join(re.findall(r"^\|.*\|$", (ROOT / name).read_text(), re.MULTILINE))
        for text, link in re.findall(r"\[([^\]]+)\]\((?:docs/|\.\./)?([\w/]+\.md)\)", table):
            if link != "model_card.md":
                assert text == names[link if "/" in link else link.lower()], link


def test_the_moving_picture_is_small_and_shows_something_at_once():
    """Both first screens show it; its first frame is a whole one."""
    path = ROOT / "docs" / "pictures" / "studio.webp"
    content = path.read_bytes()
    assert content[:4] == b"RIFF" and content[8:16] == b"WEBPVP8X" and len(content) < 1_000_000
    frames = [found.start() for found in re.finditer(b"ANMF", content)]
    assert len(frames) > 10
    whole = int.from_bytes(content[24:27], "little"), int.from_bytes(content[27:30], "little")
    # Of a frame: its size, its place and its extent.
    first = content[frames[0] + 8 : frames[0] + 20]
    assert first[:6] == bytes(6)
    assert tuple(int.from_bytes(first[at : at + 3], "little") for at in (6, 9)) == whole
    for page in ("README.md", "docs/index.md"):
        assert "pictures/studio.webp" in (ROOT / page).read_text()


def test_the_readmes_wake_phrases_are_those_that_were_measured():
    text = (ROOT / "README.md").read_text()
    rows = re.findall(r'^\| tapword: "(.+)" \| (.+)% \| (.+)% \| (.+) \|$', text, re.MULTILINE)
    kept = json.loads((ROOT / "docs" / "results" / "running_speech.json").read_text())
    measured = {
        (
            one["phrase"],
            f"{one['missed_clean']:.1f}",
            f"{one['missed_in_noise']:.1f}",
            f"{one['alarms_an_hour']:.2f}",
        )
        for one in kept["phrases"]["found"]
        if one["system"] == "tapword"
    }
    assert set(rows) == measured and len(rows) == 3
    [peer] = [one for one in kept["phrases"]["found"] if one["system"] != "tapword"]
    shown = (
        f'| {peer["system"]}, trained for "{peer["phrase"]}", in the same run '
        f"| {peer['missed_clean']:.1f}% | {peer['missed_in_noise']:.1f}% "
        f"| {peer['alarms_an_hour']:.2f} |"
    )
    assert shown in text


def test_the_published_page_has_one_address():
    """It is a setting in mkdocs.yml, and all links follow it."""
    settings = (ROOT / "mkdocs.yml").read_text()
    [published] = re.findall(r"^  published: (https://\S+/)$", settings, re.MULTILINE)
    linked = {
        page.relative_to(ROOT).as_posix(): re.findall(
            r"\((https://[^)\s]+?/)try/index\.html\)", page.read_text()
        )
        for page in PAGES
    }
    assert linked["README.md"] == linked["docs/index.md"] == [published]
    assert {link for links in linked.values() for link in links} == {published}
    assert "github.io" not in "".join(page.read_text() for page in PAGES).replace(published, "")


def test_what_the_architecture_names_is_on_the_disk():
    text = (ROOT / "docs" / "architecture.md").read_text()
    source = ROOT / "src" / "tapword"
    packages = {path.name for path in source.iterdir() if path.is_dir()} - {"__pycache__"}
    assert packages == set(re.findall(r"^\| `(\w+)/` \|", text, re.MULTILINE))
    for name in re.findall(r"`(\w+/\w+\.py)`", text):
        assert (source / name).exists() or (ROOT / name).exists(), f"{name} is not on the disk"


def test_every_promise_names_the_test_that_keeps_it():
    promises = (ROOT / "docs" / "reliability.md").read_text().partition("## What was run")[0]
    rows = re.findall(r"^\|.*\|(.*)\|$", promises, re.MULTILINE)
    kept = [row for row in rows if row.strip() not in ("test", "---")]
    assert len(kept) > 30
    for row in kept:
        named = re.findall(r"`([\w/]+\.py)?(?:::(\w+))?`", row)
        assert any(file for file, _ in named), f"no test is named by {row}"
        content = ""
        for file, test in named:
            content = (ROOT / "tests" / file).read_text() if file else content
            assert f"def {test}" in content, f"{test} is not in the tests"


# Names in bold that are Home Assistant's own.
HOME_ASSISTANT = {
    *("Add", "Install", "Start", "Show in sidebar", "Discovered", "Info", "Documentation"),
    *("Submit", "Preview", "Import blueprint", "Create automation", "Save", "Local apps"),
    *("Streaming wake word engine", "tapword", "Home Assistant OS.", "Any other machine."),
    *("systemd.", "Docker"),
}


@pytest.mark.parametrize("page", ["docs/home_assistant.md", "contrib/home_assistant_addon/DOCS.md"])
def test_the_buttons_of_the_home_are_named_as_the_page_names_them(page):
    named = {
        " ".join(name.split())
        for name in re.findall(r"\*\*(.+?)\*\*", (ROOT / page).read_text(), re.S)
    }
    texts = (ROOT / "src/tapword/serve/studio/static/en.js").read_text()
    options = (ROOT / "contrib/home_assistant_addon/translations/en.yaml").read_text()
    studio = {
        name
        for name in named - HOME_ASSISTANT
        if "→" not in name and f"name: {name}\n" not in options
    }
    missing = {name for name in studio if f"'{name}'" not in texts}
    assert not missing and {"Use as microphone", "Calibrate"} <= studio

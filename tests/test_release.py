"""The published wheel and source distribution: contents and metadata."""

import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_bytes

import pytest
from packaging.metadata import Metadata
from packaging.specifiers import SpecifierSet

import tapword
from tests.conftest import ROOT

NAME = f"tapword-{tapword.__version__}"
# Our own bound; the largest part are the statistics and the demo's clips in assets/.
MOST_BYTES = 16_000_000


def build(source, target, *options):
    pytest.importorskip("build")
    pytest.importorskip("hatchling")
    command = [sys.executable, "-m", "build", "--no-isolation", *options, "--outdir", target]
    done = subprocess.run([*command, source], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Build both files, the wheel from the source distribution, as published."""
    folder = tmp_path_factory.mktemp("built")
    build(ROOT, folder)
    wheel, source = sorted(folder.iterdir())
    assert (wheel.name, source.name) == (f"{NAME}-py3-none-any.whl", f"{NAME}.tar.gz")
    return wheel, source


@pytest.fixture(scope="module")
def metadata(built):
    with zipfile.ZipFile(built[0]) as archive:
        return archive.read(f"{NAME}.dist-info/METADATA")


def tracked(folder):
    """Return the files of a folder in the checkout, without Python's caches."""
    paths = (path for path in (ROOT / folder).rglob("*") if path.is_file())
    return {path.relative_to(ROOT).as_posix() for path in paths if "__pycache__" not in path.parts}


def test_the_wheel_holds_the_package_and_nothing_else(built):
    with zipfile.ZipFile(built[0]) as archive:
        names = set(archive.namelist())
    own = {name for name in names if not name.startswith(f"{NAME}.dist-info/")}
    assert own == {name.removeprefix("src/") for name in tracked("src/tapword")}
    for name in ("py.typed", "assets/clips/lamp/flite-rms_0.ogg", "serve/studio/static/index.html"):
        assert f"tapword/{name}" in own
    assert {f"{NAME}.dist-info/licenses/{name}" for name in ("LICENSE", "NOTICE")} <= names


def test_the_source_holds_what_it_takes_to_build_test_and_read_it(built):
    with tarfile.open(built[1]) as archive:
        members = archive.getmembers()
    names = {member.name.removeprefix(f"{NAME}/") for member in members}
    assert all(member.isfile() for member in members), "no link leads out of it"
    for folder in (".ci", "src", "tests", "docs", "training"):
        assert tracked(folder) <= names
    for name in ("README.md", "LICENSE", "NOTICE", "CHANGELOG.md", "pyproject.toml"):
        assert name in names
    top = {name.partition("/")[0] for name in names}
    assert top.isdisjoint({".git", ".github", ".venv", "build", "dist", "shared"})
    assert not any(re.search(r"__pycache__|\.\w+_cache/|\.egg-info", name) for name in names)


def test_what_the_container_copies_is_enough_to_install_from(built, tmp_path):
    lines = (ROOT / "contrib" / "Dockerfile").read_text("utf-8")
    for files, target in re.findall(r"^COPY (.+) /tmp/tapword/(\w*)$", lines, re.MULTILINE):
        for name in files.split():
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copied = tmp_path / "tapword" / (target or name)
            copied.parent.mkdir(exist_ok=True)
            copy(ROOT / name, copied)
    build(tmp_path / "tapword", tmp_path, "--wheel")
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as ours, zipfile.ZipFile(built[0]) as published:
        assert set(published.namelist()) <= set(ours.namelist())


def test_both_are_small(built):
    assert all(path.stat().st_size < MOST_BYTES for path in built)


def test_the_metadata_is_valid_and_leads_somewhere(metadata):
    said = Metadata.from_email(metadata, validate=True)
    assert said.license_expression == "Apache-2.0"
    classifiers = said.classifiers or []
    assert not any("License" in one for one in classifiers), "the expression says it"
    pythons = {one.rpartition(" ")[2] for one in classifiers if ":: Python :: 3." in one}
    assert pythons == {"3.11", "3.12", "3.13", "3.14"}
    assert said.requires_python == SpecifierSet(">=3.11")
    home = "https://github.com/tapword/tapword"
    assert all(url.startswith(home) for url in (said.project_urls or {}).values())
    assert {"Homepage", "Documentation", "Changelog", "Issues"} == set(said.project_urls or {})


def test_the_description_has_no_link_to_a_file_beside_it(metadata):
    """PyPI shows it on a page without other files."""
    message = message_from_bytes(metadata)
    assert message["Description-Content-Type"] == "text/markdown"
    text = message.get_payload(decode=True).decode()
    links = ["".join(found) for found in re.findall(r'\]\(([^)]+)\)|src="([^"]+)"', text)]
    assert len(links) > 10 and all(link.startswith("https://") for link in links)
    # Each is a file of this checkout, at the version's tag.
    own = re.compile(rf".*/tapword/tapword/(?:blob/)?v{re.escape(tapword.__version__)}/(.+)")
    files = [found[1] for found in map(own.fullmatch, links) if found]
    assert len(files) > 10 and all((ROOT / name.partition("#")[0]).exists() for name in files)


def test_an_extra_is_spelled_as_the_metadata_spells_it(metadata):
    """An older pip, such as 23.2, installs nothing for another spelling."""
    provided = set(message_from_bytes(metadata).get_all("Provides-Extra"))
    # In a command, as in `pip install '.[web,mic]'`; in code and docstrings.
    command = r"(?:\.|tapword|\.whl|\$\([^)]*\))\[([\w,-]+)\]['\"`]"
    missing = r"MissingExtra\(.*, \"(?=[\w-]+\"\))"
    code = rf"(?:extras? `|[Ee]xtra = \"|{missing})([\w-]+)[`\"]|EXTRA = .*\"([\w-]+)\"$"
    found: dict[str, set[str]] = {}
    paths = {path.name for path in ROOT.iterdir() if path.is_file()}
    for path in paths.union(*map(tracked, ("src", "docs", "examples", "contrib", "tests"))):
        if not path.endswith((".py", ".md", ".ipynb", "Makefile", "Dockerfile")):
            continue
        text = (ROOT / path).read_text("utf-8")
        for groups in re.findall(f"{command}|{code}", text, re.MULTILINE):
            for extra in filter(None, ",".join(groups).split(",")):
                found.setdefault(extra, set()).add(path)
    assert {"web", "speech-embedding", "moonshine", "hf"} <= found.keys()
    assert found.keys() <= provided, found


def test_one_version_is_named_everywhere():
    for name, pattern in [
        ("CITATION.cff", r"^version: (.+)$"),
        ("contrib/home_assistant_addon/config.yaml", r'^version: "(.+)"$'),
        ("CHANGELOG.md", r"^## (\S+) - "),
        ("contrib/home_assistant_addon/CHANGELOG.md", r"^## (\S+)$"),
    ]:
        found = re.search(pattern, (ROOT / name).read_text("utf-8"), re.MULTILINE)
        assert found and found[1] == tapword.__version__, name
    for named in re.findall(r"tapword-(\d[\d.]*\d)", (ROOT / "README.md").read_text("utf-8")):
        assert named == tapword.__version__


def test_a_release_has_the_tag_of_its_version_and_a_day(tmp_path):
    for name in (".ci", "src/tapword"):
        (tmp_path / name).mkdir(parents=True)
    script = shutil.copy(ROOT / ".ci" / "release_notes.py", tmp_path / ".ci")
    (tmp_path / "src/tapword/version.py").write_text('"""Doc."""\n\n__version__ = "1.2.0"\n')
    (tmp_path / "CHANGELOG.md").write_text("# Changes\n\n## 1.2.0 - unreleased\n\n- More.\n")

    def notes(tag):
        done = subprocess.run([sys.executable, script, tag], capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    assert notes("v1.2.0")[0] == 1 and "YEAR-MONTH-DAY" in notes("v1.2.0")[2]
    text = (
        "# Changes\n\n## 1.2.0 - 2026-11-16\n\n- More.\n- Less.\n\n## 1.1.0 - 2026-01-01\n\n- A.\n"
    )
    (tmp_path / "CHANGELOG.md").write_text(text)
    assert notes("v1.2.0") == (0, "- More.\n- Less.\n", "")
    code, output, error = notes("v1.1.0")
    assert (code, output) == (1, "") and "the tag is v1.1.0, the version" in error

"""Reports in a real browser: what is on them fits."""

import re
import shutil

import pytest

from tapword.research import paper, report
from tapword.research.paper.compare import Cell, Comparison, Group, Reproduced
from tapword.research.paper.reproduce import Reproduction
from tapword.research.records import VoiceDraw, VoiceResult
from tests.research.test_report import few_shot, many, open_set, records, result

pytest.importorskip("playwright", reason="needs playwright: pip install playwright")

from playwright.sync_api import sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


@pytest.fixture(scope="module")
def browser():
    executable = next(filter(None, map(shutil.which, NAMES)), None)
    if executable is None:
        pytest.skip(f"needs a browser: none of {', '.join(NAMES)} is installed")
    with sync_playwright() as library:
        browser = library.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield browser
        browser.close()


def presets():
    """Presets beside parts with long names, as a comparison has them."""
    spec = {"backbone": "speech_embedding:layers=b64+emb+emb"}
    spec |= {"learner": "cosine:prior=shipped,covariance=full"}
    spec |= {"pooling": "blocks:poolings=tap:R=2+tap:R=2+middle", "acc_balanced": 100.0}
    spec |= {"state_bytes": 2_700_000, "dim": 1152, "bwt_signed": -100.0, "forg": 100.0}
    return records(*(result(size=size, **spec) for size in ("small", None)), result())


def voices():
    one = VoiceDraw(
        seed=0, person=None, words=["up"], clips=9, frr_5=9.9, frr_1=9.9, owner_5=9, owner_1=9
    )
    spread = {"frr_5_ci": (10.0, 99.9), "frr_1_ci": (10.0, 99.9)}
    spread |= {"owner_5_ci": (10.0, 99.9), "owner_1_ci": (10.0, 99.9)}
    both = VoiceResult(
        learner="ncm", shots=5, dim=1152, known=3, voice="others", people=632, frr_5=12.3,
        frr_5_draws=12.3, frr_5_draws_std=10.1, frr_1=12.3, frr_1_draws=12.3, frr_1_draws_std=10.1,
        owner_5=12.3, owner_1=12.3, median_known=0.497, median_owner=0.4, median_others=0.2,
        orderings=[one, one], **spread,
    )  # fmt: skip
    return records(both, order="open-set", known=3, shots=[5], draws=2)


def beside_the_paper():
    """As many backbones as the paper has, each with three columns, and the mean."""
    groups = [Group(f"speech_embedding:layers={i}", paper="paper mean of 6") for i in range(7)]
    table = Comparison("Acc", "TAP +", groups)
    table.add("a learner", [Cell(100.0, 100.0)] * 7)
    tables = [Reproduced([table], name="table", title="of many columns")]
    return Reproduction([], {}, {}, tables, [], records().environment)


@pytest.mark.parametrize("case", [many, few_shot, open_set, presets, voices, beside_the_paper])
def test_tables_fit_a_page_of_1280_pixels(browser, tmp_path, case):
    given = case()
    writers = paper.WRITERS if isinstance(given, Reproduction) else report.WRITERS
    report.write(given, tmp_path / "report.html", writers)
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto((tmp_path / "report.html").as_uri())
    widths = page.evaluate(
        "[...document.querySelectorAll('.scroll, html')].map(e => [e.scrollWidth, e.clientWidth])"
    )
    page.close()
    assert len(widths) > 1 and all(needed <= given for needed, given in widths), widths


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_is_written_in_charts_stands_out_from_the_page(browser, tmp_path, scheme):
    """Contrast of 4.5 to 1, as WCAG asks of text."""
    report.write_html(many(), tmp_path / "report.html")
    page = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme=scheme)
    page.goto((tmp_path / "report.html").as_uri())
    colours = page.evaluate(
        """() => {
          const seen = e => getComputedStyle(e);
          const found = [...document.querySelectorAll('svg text:not([class^=on-])')];
          return [seen(document.body).backgroundColor, ...new Set(found.map(e => seen(e).fill))];
        }"""
    )
    page.close()
    ground, *texts = map(luminance, colours)
    assert len(texts) > 3
    for text in texts:
        low, high = sorted((ground, text))
        assert (high + 0.05) / (low + 0.05) >= 4.5, colours


def luminance(colour):
    """Relative luminance of "rgb(255, 255, 255)" or "color(srgb 1 1 1)"."""
    numbers = [float(number) for number in re.findall(r"[\d.]+", colour)]
    parts = numbers if colour.startswith("color") else [number / 255 for number in numbers]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return sum(weight * x for weight, x in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

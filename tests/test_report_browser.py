"""The report in a real Chromium: figures drawn, slider moved, tables sorted, and nothing asked of any network."""

import json
import os
import re
import shutil

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from kproba import LSPC, write_report
from kproba.report.markup import amount, count, number, share
from kproba.report.measures import top_class
from made_up import HOSTILE, Oracle, made_up, rare

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="chromium and chromedriver are not installed: run scripts/install_chromium.sh"
)
NUMBERS = ("coverage", "risk-kept", "mistakes", "rejected", "cost", "cost-all")


@pytest.fixture(scope="module")
def browser():
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1200,900"):
        options.add_argument(argument)
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        options.add_argument("--no-sandbox")  # Chromium has no sandbox for root, which containers run as
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """A real model, labels that mean harm, all letters, tied probabilities: files, and what is true of them."""
    folder = tmp_path_factory.mktemp("reports")
    data = load_breast_cancer(as_frame=True)
    X, y = data.data, np.array(data.target_names)[data.target]
    model = LSPC(random_state=0).fit(X[::2], y[::2])
    two = write_report(model, X[1::2], y[1::2], folder / "two.html", X_train=X[::2], y_train=y[::2])
    found = {"two": (two, _top(model, X[1::2], y[1::2]))}
    for name, n, classes in (("hostile", 400, HOSTILE), ("letters", 3000, [chr(65 + k) for k in range(26)])):
        model, X, y = made_up(n, classes, sharpness=3.0)
        path = write_report(model, X, y, folder / f"{name}.html", names=classes, X_train=X, y_train=y)
        found[name] = (path, _top(model, X, y))
    model, X, y = (
        Oracle(["no", "yes"]).fit(),
        np.linspace(0.5, 1.0, 11).round(2).repeat(20),
        np.tile(["no", "yes"], 110),
    )
    X = np.column_stack([X, (1.0 - X).round(2)])
    found["tied"] = (write_report(model, X, y, folder / "tied.html"), _top(model, X, y))
    model, X, y = rare(20_000)
    found["rare"] = (write_report(model, X, y, folder / "rare.html"), (X[:, 0] / X.sum(axis=1), y == "fraud"))
    return found


def _top(model, X, y):
    return top_class(np.searchsorted(model.classes_, y), np.asarray(model.predict_proba(X)))


@pytest.fixture
def show(browser, reports):
    """Opens a report; whatever is done with it, the console stays silent and no network is asked."""
    browser.get_log("browser"), browser.get_log("performance")

    def shown(name, width=1200, scheme="light"):
        _emulate(browser, width, scheme)
        browser.get(reports[name][0].as_uri())
        return browser

    yield shown
    assert browser.get_log("browser") == []
    assert _requests(browser) <= {path.as_uri() for path, _ in reports.values()}


def _emulate(browser, width, scheme):
    shape = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", shape)
    # who clicks does not wait for a page that glides
    features = [
        {"name": "prefers-color-scheme", "value": scheme},
        {"name": "prefers-reduced-motion", "value": "reduce"},
    ]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def _requests(browser) -> set:
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    return {url.partition("#")[0] for url in asked if not url.startswith("data:")}


def _texts(browser, names=NUMBERS) -> dict:
    return {name: browser.find_element("id", name).text for name in names}


def _value(text: str) -> float:
    return np.nan if text == "–" else float(text.replace(",", "").replace(" %", ""))


def _expected(top, threshold, of_error=10.0, of_rejection=1.0) -> dict:
    kept = top.confidence >= threshold
    wrong, rejected, n = (kept & ~top.correct).sum(), (~kept).sum(), len(kept)
    cost = of_error * wrong + of_rejection * rejected
    risk = share(wrong / kept.sum()) if kept.any() else "–"
    return dict(zip(NUMBERS, (share(kept.mean()), risk, count(wrong), count(rejected), number(cost / n), amount(cost))))


def _agree(browser, expected):
    """The texts are those of Python, but for the last digit of a value halfway between two."""
    for name, text in _texts(browser, expected).items():
        decimals = len(text.replace(" %", "").partition(".")[2])
        assert len(text) == len(expected[name]), (name, text, expected[name])
        assert _value(text) == pytest.approx(
            _value(expected[name]), abs=1.01 * 10.0**-decimals * (decimals > 0), nan_ok=True
        )


def _type(element, text):
    from selenium.webdriver.common.keys import Keys

    element.send_keys(Keys.CONTROL, "a")
    element.send_keys(text)


@pytest.mark.parametrize("name", ["two", "hostile", "letters"])
@pytest.mark.parametrize("width", [1200, 375, 320])
def test_every_figure_is_drawn_and_the_page_is_not_too_wide(show, name, width):
    browser = show(name, width)
    sizes = browser.execute_script(
        "return [...document.querySelectorAll('svg.drawing, #confusion')].map(e => [e.id, e.getBoundingClientRect()])"
        ".map(([id, box]) => [id, box.width, box.height])"
    )
    assert len(sizes) >= (12 if name == "two" else 10)
    assert all(w > 100 and h > 50 for _, w, h in sizes), sizes
    drawn = browser.execute_script(
        "return [...document.querySelectorAll('svg.drawing path, svg.drawing circle, svg.drawing rect')]"
        ".every(e => !/NaN|Infinity/.test(e.outerHTML))"
    )
    assert drawn
    shown, room = browser.execute_script("return [document.documentElement.scrollWidth, window.innerWidth]")
    assert shown <= room


def test_text_of_figures_is_no_smaller_than_ten_pixels_on_a_phone(show):
    browser = show("two", 375)
    scale = browser.execute_script(
        "return [...document.querySelectorAll('svg.drawing')].map(e => e.getScreenCTM().a * 11)"
    )
    assert min(scale) >= 9.5


@pytest.mark.parametrize("name", ["two", "letters", "tied"])
def test_slider_by_its_value(show, reports, name):
    browser, top = show(name), reports[name][1]
    _agree(browser, _expected(top, 0.9))
    for threshold in (0.0, 0.5, 0.55, 0.7, 0.701, 0.95, 0.999, 1.0):
        browser.execute_script(
            "const s = document.getElementById('threshold'); s.value = arguments[0];"
            "s.dispatchEvent(new Event('input', {bubbles: true}))",
            str(threshold),
        )
        _agree(browser, _expected(top, threshold))
    assert "kept" in browser.find_element("id", "threshold").get_attribute("aria-valuetext")


def test_slider_by_keyboard(show, reports):
    from selenium.webdriver.common.keys import Keys

    browser, top = show("two"), reports["two"][1]
    slider, marker = browser.find_element("id", "threshold"), browser.find_element("id", "risk-marker")
    slider.send_keys(Keys.ARROW_RIGHT * 5)
    assert slider.get_attribute("value") == "0.905"
    _agree(browser, _expected(top, 0.905))
    slider.send_keys(Keys.HOME)
    _agree(browser, _expected(top, 0.0))
    right = float(marker.get_attribute("cx"))
    slider.send_keys(Keys.END, Keys.PAGE_DOWN)
    threshold = float(slider.get_attribute("value"))
    assert 0.5 < threshold < 1.0
    _agree(browser, _expected(top, threshold))
    assert float(marker.get_attribute("cx")) < right
    assert browser.find_element("id", "exact").get_attribute("value") == slider.get_attribute("value")


def test_threshold_and_costs_are_typed(show, reports):
    browser, top = show("letters"), reports["letters"][1]
    _type(browser.find_element("id", "exact"), "0.876543")
    _agree(browser, _expected(top, 0.876543))
    _type(browser.find_element("id", "cost-error"), "2.5")
    _type(browser.find_element("id", "cost-rejection"), "0.4")
    _agree(browser, _expected(top, 0.876543, 2.5, 0.4))
    _type(browser.find_element("id", "cost-error"), "-3")
    _agree(browser, _expected(top, 0.876543, 0.0, 0.4))


@pytest.mark.parametrize("costs", [(10.0, 1.0), (1.0, 0.9), (1.0, 0.0), (0.0, 1.0)])
def test_cheapest_threshold(show, reports, costs):
    browser, top = show("letters"), reports["letters"][1]
    for name, cost in zip(("cost-error", "cost-rejection"), costs):
        _type(browser.find_element("id", name), str(cost))
    browser.find_element("id", "cheapest").click()
    thresholds = np.append(0.0, np.unique(np.floor(top.confidence * 1e6) / 1e6))
    least = min(_value(_expected(top, t, *costs)["cost-all"]) for t in np.append(thresholds, thresholds[-1] + 1e-6))
    assert _value(_texts(browser)["cost-all"]) == pytest.approx(least, abs=0.0051)
    threshold = float(browser.find_element("id", "exact").get_attribute("value"))
    _agree(browser, _expected(top, threshold, *costs))


CUTS = ("cut-n-hits", "cut-n-missed", "cut-n-alarms", "cut-n-right")
CUT_NUMBERS = ("cut-recall", "cut-precision", "cut-alarms", "cut-flagged", "cut-cost", "cut-cost-all")


def _expected_cut(p, own, threshold, of_alarm, of_miss) -> dict:
    flagged = p >= threshold - 1e-12
    hits, missed = (own & flagged).sum(), (own & ~flagged).sum()
    alarms, right = (~own & flagged).sum(), (~own & ~flagged).sum()
    cost = of_alarm * alarms + of_miss * missed
    precision = share(hits / flagged.sum()) if flagged.any() else "–"
    texts = (share(hits / own.sum()), precision, share(alarms / (~own).sum()), count(flagged.sum()))
    cells = dict(zip(CUTS, map(count, (hits, missed, alarms, right))))
    return cells | dict(zip(CUT_NUMBERS, (*texts, number(cost / len(p)), amount(cost))))


def _positive(reports, name):
    """The probabilities of the positive class and whether rows are positive."""
    if name == "rare":
        return reports[name][1]
    top = reports[name][1]
    second = top.predicted == 1
    return np.where(second, top.confidence, 1.0 - top.confidence), second == top.correct


@pytest.mark.parametrize(
    "name, costs, first", [("two", (1, 1), 0.5), ("tied", (1, 1), 0.5), ("rare", (1, 1000), 0.001)]
)
def test_threshold_of_two_classes(show, reports, name, costs, first):
    browser, (p, own) = show(name), _positive(reports, name)
    _agree(browser, _expected_cut(p, own, first, *costs))
    for threshold in (0.0, 0.0005, 0.2, 0.55, 0.999999, 1.0):
        _type(browser.find_element("id", "cut-exact"), str(threshold))
        _agree(browser, _expected_cut(p, own, threshold, *costs))
    _type(browser.find_element("id", "cost-alarm"), "3")
    _type(browser.find_element("id", "cost-miss"), "0.5")
    _agree(browser, _expected_cut(p, own, 1.0, 3, 0.5))
    assert browser.find_element("id", "cut-best").text == "0.857"


@pytest.mark.parametrize("name, costs", [("two", (1, 5)), ("tied", (2, 1)), ("rare", (1, 500)), ("rare", (1, 0))])
def test_cheapest_threshold_of_two_classes(show, reports, name, costs):
    browser, (p, own) = show(name), _positive(reports, name)
    for cost, value in zip(("cost-alarm", "cost-miss"), costs):
        _type(browser.find_element("id", cost), str(value))
    browser.find_element("id", "cut-cheapest").click()
    levels = np.append(np.unique(np.floor(p * 1e6 + 1e-6)) / 1e6, 1.1)
    least = min(
        _value(_expected_cut(p, own, level, *costs)["cut-cost-all"]) for level in levels[:: max(1, len(levels) // 400)]
    )
    assert _value(_texts(browser, CUT_NUMBERS)["cut-cost-all"]) <= least


def test_markers_follow_the_threshold(show, reports):
    browser, (p, own) = show("rare"), _positive(reports, "rare")
    _type(browser.find_element("id", "cut-exact"), "0.01")
    recall = (p[own] >= 0.01).mean()
    left, right, *_ = map(float, browser.find_element("id", "precision-recall").get_attribute("data-ends").split())
    at = float(browser.find_element("id", "recall-marker").get_attribute("cx"))
    assert at == pytest.approx(left + recall * (right - left), abs=0.06)
    slider = browser.find_element("id", "cut")
    assert float(slider.get_attribute("value")) == pytest.approx(-2.0, abs=0.005)
    assert "recall" in slider.get_attribute("aria-valuetext")


@pytest.mark.parametrize("name", ["two", "tied", "rare", "letters"])
def test_numbers_are_the_same_without_the_script(show, reports, name):
    """What Python writes for the first threshold is what the script shows."""
    browser, text = show(name), reports[name][0].read_text(encoding="utf-8")
    shown = browser.execute_script(
        "return [...document.querySelectorAll('dd[id], #confusion td[id], #cut-best')].map(e => [e.id, e.textContent])"
    )
    assert len(shown) >= 6
    for identity, value in shown:
        assert re.search(rf'id="{identity}">([^<]*)<', text)[1] == value


@pytest.mark.parametrize("name", ["two", "hostile", "letters", "rare", "tied"])
@pytest.mark.parametrize("width", [1440, 390])
def test_labels_of_figures_do_not_overlap(show, name, width):
    overlapping = show(name, width).execute_script(
        "const found = [];"
        "for (const drawing of document.querySelectorAll('svg.drawing')) {"
        "  const boxes = [...drawing.querySelectorAll('text')].map(e => [e.textContent, e.getBoundingClientRect()]);"
        "  boxes.forEach(([a, p], i) => boxes.slice(i + 1).forEach(([b, q]) => {"
        "    if (p.left < q.right - 1 && q.left < p.right - 1 && p.top < q.bottom - 2 && q.top < p.bottom - 2)"
        "      found.push([drawing.id, a, b]);"
        "  }));"
        "}"
        "return found"
    )
    assert overlapping == []


@pytest.mark.parametrize("width", [1440, 390])
def test_cue_where_a_table_is_too_wide(show, width):
    browser = show("two", width)
    found = browser.execute_script(
        "return [...document.querySelectorAll('.scroll')].map(e => [e.scrollWidth > e.clientWidth + 1,"
        "getComputedStyle(e.nextElementSibling).display !== 'none'])"
    )
    assert [wide for wide, _ in found] == [cue for _, cue in found] and [True, True] in found


@pytest.mark.parametrize("name", ["two", "letters", "rare"])
def test_paper_has_nothing_to_click_or_scroll(show, browser, name):
    show(name, width=703, scheme="dark")  # A4 without its margins
    features = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": features})
    hidden = browser.execute_script(
        "return [...document.querySelectorAll('nav, .cue, .action, input[type=range]')]"
        ".every(e => getComputedStyle(e).display === 'none')"
    )
    cut = browser.execute_script(
        "return [...document.querySelectorAll('.scroll')].filter(e => e.scrollHeight > e.clientHeight + 1).length"
    )
    colour = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    wide, room = browser.execute_script("return [document.documentElement.scrollWidth, window.innerWidth]")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert (hidden, cut, colour) == (True, 0, "rgb(255, 255, 255)") and wide <= room


def _column(browser, table, column):
    return browser.execute_script(
        f"return [...document.querySelectorAll('#{table} tbody tr')].map(r => r.cells[{column}].textContent)"
    )


def test_tables_are_sorted_by_mouse_and_keyboard(show):
    from selenium.webdriver.common.keys import Keys

    browser = show("two")
    headings = browser.find_elements("css selector", "#doubtful thead th")
    buttons = browser.find_elements("css selector", "#doubtful thead button")
    rows = [int(text) for text in _column(browser, "doubtful", 0)]
    buttons[0].click()
    assert [int(text) for text in _column(browser, "doubtful", 0)] == sorted(rows)
    assert headings[0].get_attribute("aria-sort") == "ascending"
    buttons[0].send_keys(Keys.ENTER)
    assert [int(text) for text in _column(browser, "doubtful", 0)] == sorted(rows, reverse=True)
    assert headings[0].get_attribute("aria-sort") == "descending"
    buttons[1].send_keys(Keys.SPACE)
    words = _column(browser, "doubtful", 1)
    assert words == sorted(words) and headings[0].get_attribute("aria-sort") == "none"
    buttons[6].click()
    values = [float(text) for text in _column(browser, "doubtful", 6)]
    assert values == sorted(values)


def test_class_is_chosen(show):
    from selenium.webdriver.support.ui import Select

    browser = show("letters")
    choice = Select(browser.find_element("id", "class"))
    for place in (0, len(choice.options) - 1):
        choice.select_by_index(place)
        for drawing, many in (("roc", 1), ("precision-recall", 2)):
            chosen = browser.find_elements("css selector", f"#{drawing} .chosen")
            assert [line.get_attribute("data-class") for line in chosen] == [str(place)] * many
            top = browser.find_element("css selector", f"#{drawing} > :last-child")
            assert top.get_attribute("class") == "curve chosen"
        row = browser.find_elements("css selector", "#class-table tbody tr")[place]
        told = browser.find_element("id", "class-numbers").text
        assert all(cell.text in told for cell in row.find_elements("css selector", "td"))


def test_dark_and_light_differ(show):
    colours = {}
    for scheme in ("light", "dark"):
        browser = show("two", scheme=scheme)
        colours[scheme] = browser.execute_script(
            "const of = (s, p) => getComputedStyle(document.querySelector(s))[p];"
            "return [of('body', 'backgroundColor'), of('body', 'color'), of('#risk .line', 'stroke'),"
            "of('#reliability text', 'fill'), of('.confusion td', 'backgroundColor'), of('#reasons rect', 'fill')]"
        )
    assert all(a != b for a, b in zip(*colours.values())), colours


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["two", "letters"])
def test_text_stands_out(show, name, scheme):
    """Contrast of 4.5 for all text, as WCAG AA asks."""
    browser = show(name, scheme=scheme)
    poor = browser.execute_script(_CONTRAST)
    assert poor == []


#: Text whose contrast with what lies behind it is too small; colours are read back from a canvas in sRGB.
_CONTRAST = """
const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
const rgba = (colour) => {
  canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
  return [...canvas.getImageData(0, 0, 1, 1).data];
};
const light = (c) => [0.2126, 0.7152, 0.0722].reduce((sum, w, i) => {
  const v = c[i] / 255; return sum + w * (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
}, 0);
const behind = (e) => {
  for (; e; e = e.parentElement) { const c = rgba(getComputedStyle(e).backgroundColor); if (c[3] === 255) return c; }
  return [255, 255, 255, 255];
};
const poor = [];
for (const e of document.querySelectorAll('p,li,td,th,dt,dd,h1,h2,h3,h4,a,small,label,output,button,svg text')) {
  if (!e.textContent.trim() || e.closest('.unseen,.skip')) continue;
  const style = getComputedStyle(e), ink = rgba(e.namespaceURI.endsWith('svg') ? style.fill : style.color);
  const [a, b] = [light(ink), light(behind(e))].sort((x, y) => y - x);
  const ratio = (a + 0.05) / (b + 0.05);
  if (ratio < 4.5) poor.push([e.tagName, e.className.baseVal ?? e.className, e.textContent.slice(0, 20), ratio]);
}
return poor.slice(0, 10);
"""


def test_tab_reaches_everything_in_order(show):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    browser, seen = show("two"), []
    for _ in range(75):
        ActionChains(browser).send_keys(Keys.TAB).perform()
        seen.append(
            browser.execute_script(
                "const e = document.activeElement, t = e.closest('table');"
                "const inTable = t && e.tagName === 'BUTTON' ? t.id + ':' + e.textContent : '';"
                "return e.id || inTable || e.getAttribute('aria-label') || e.textContent"
            )
        )
    wanted = ["Skip to the report", "Calibration", "cut", "cut-exact", "cost-alarm", "cost-miss", "cut-cheapest"]
    wanted += ["threshold", "exact", "cost-error", "cost-rejection", "cheapest", "group-table:rows"]
    wanted += ["drift-table:distance", "doubtful:row", "doubtful:P(malignant)", "mistakes-table:true"]
    assert set(wanted) <= set(seen)
    assert sorted(wanted, key=seen.index) == wanted
    outlined = browser.execute_script("return getComputedStyle(document.activeElement).outlineStyle")
    assert outlined != "none"


def test_labels_that_mean_harm_stay_text(show):
    from selenium.common.exceptions import NoAlertPresentException

    browser = show("hostile")
    with pytest.raises(NoAlertPresentException):
        browser.switch_to.alert.text  # noqa: B018
    assert browser.title == "Oracle: evaluation report"
    assert browser.execute_script("return [document.scripts.length, document.images.length]") == [2, 0]
    names = browser.execute_script(
        "return [...document.querySelectorAll('#class-table tbody th')].map(e => e.textContent)"
    )
    assert names[0] == HOSTILE[0]
    assert browser.execute_script("return document.querySelector('#class option').textContent") == HOSTILE[0]


def test_text_of_figures_can_be_selected(show):
    browser = show("two")
    selected = browser.execute_script(
        "getSelection().selectAllChildren(document.querySelector('#reliability text.name')); return getSelection() + ''"
    )
    assert selected == "predicted probability"


def test_links_lead_to_sections(show):
    browser = show("two")
    targets = [link.get_attribute("href").partition("#")[2] for link in browser.find_elements("css selector", "nav a")]
    assert targets == ["beside", "calibration", "decide", "reject", "reasons", "groups", "drift", "rows", "fitted"]
    assert all(browser.find_elements("id", target) for target in targets)


def test_the_page_may_not_ask_any_network(browser, reports):
    """Even a script on the page could not: its own policy forbids it."""
    browser.get(reports["two"][0].as_uri())
    answer = browser.execute_async_script(
        "const done = arguments[0];"
        "document.addEventListener('securitypolicyviolation', e => done(e.effectiveDirective), {once: true});"
        "fetch('https://example.org/').catch(() => {})"
    )
    assert answer == "connect-src"
    browser.get_log("browser")

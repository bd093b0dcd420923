"""Take the picture of a report that the README and the landing page show: `make picture`.

Chromium has to be installed (scripts/install_chromium.sh).
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from kproba import LSPC, write_report

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "_static" / "report.png"
WIDTH, HEIGHT = 1100, 1000


def report(folder: Path) -> Path:
    """A report of a table that ships with scikit-learn."""
    data = load_breast_cancer(as_frame=True)
    X, X_new, y, y_new = train_test_split(data.data, np.array(data.target_names)[data.target], random_state=0)
    clf = LSPC(random_state=0).fit(X, y)
    return write_report(clf, X_new, y_new, folder / "report.html", X_train=X, y_train=y, title="Breast cancer")


def browser():
    """Chromium without a window."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    chromium, driver = shutil.which("chromium") or shutil.which("google-chrome"), shutil.which("chromedriver")
    if not (chromium and driver):
        sys.exit("chromium and chromedriver are not installed: run scripts/install_chromium.sh")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(argument)
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        options.add_argument("--no-sandbox")  # Chromium has no sandbox for root, which containers run as
    return webdriver.Chrome(options=options, service=Service(driver))


def photograph(page: Path) -> Image.Image:
    """The top of the page."""
    chromium = browser()
    try:
        size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1.5, "mobile": False}
        chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        chromium.get(page.as_uri())
        return Image.open(io.BytesIO(chromium.get_screenshot_as_png())).convert("RGB")
    finally:
        chromium.quit()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        picture = photograph(report(Path(folder)))
    # a page of text and a few colours: 64 of them look the same in a third of the bytes
    picture.quantize(64, dither=Image.Dither.NONE).save(PICTURE, optimize=True)


if __name__ == "__main__":
    main()

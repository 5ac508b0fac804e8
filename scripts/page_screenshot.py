"""Take the README's screenshot of the service's page in a browser: python -m scripts.page_screenshot.

Requires the extras `dev` and `demo`, and Debian's chromium.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright
from sklearn.datasets import load_digits

from siesta import Siesta
from siesta.errors import SiestaError
from siesta.service.client import Client

ROOT = Path(__file__).parent.parent
URL = "http://127.0.0.1:8765"
CLASSES = {2: "two", 3: "three", 5: "five", 8: "eight"}
SAMPLES_PER_CLASS = 32
SLEEP_SECONDS = 24
IMAGE_SIDE = 160
PAPER_COLOURS = [(236, 244, 255), (255, 244, 228), (238, 255, 240), (252, 238, 255)]


def main() -> None:
    """Learn, predict, start a sleep, and take the screenshot about half way through it."""
    digits = load_digits()
    pictures = {name: digits.images[digits.target == digit] for digit, name in CLASSES.items()}
    with tempfile.TemporaryDirectory() as folder, _serving(Path(folder) / "digits.siesta") as service:
        for name, images in pictures.items():
            service.learn([_scan(image, number) for number, image in enumerate(images[:SAMPLES_PER_CLASS])], name)
        question = Path(folder) / "question.png"
        question.write_bytes(_scan(pictures["three"][SAMPLES_PER_CLASS + 2], 1))
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1360, "height": 860})
            page.goto(URL)
            page.locator("#ask-file").set_input_files(question)
            page.locator("#answer").wait_for()
            service.sleep(seconds=SLEEP_SECONDS)
            while (progress := service.sleep_status().progress) is None or progress.fraction < 0.55:
                time.sleep(0.2)
            page.screenshot(path=ROOT / "docs" / "page.png")
            browser.close()


@contextmanager
def _serving(path: Path) -> Iterator[Client]:
    Siesta.create(path, memory="2MB", image_size=64).close()
    command = [sys.executable, "-m", "siesta", "serve", str(path), "--port", URL.rpartition(":")[2]]
    process = subprocess.Popen(command)  # noqa: S603 - the command is fixed
    try:
        with Client(URL) as client:
            while not _answers(client):
                time.sleep(0.2)
            yield client
    finally:
        process.terminate()
        process.wait()


def _answers(client: Client) -> bool:
    with suppress(SiestaError):
        return bool(client.info().version)
    return False


def _scan(image: np.ndarray[tuple[int, ...], np.dtype[np.float64]], number: int) -> bytes:
    """Return a digit drawn in ink on coloured paper, as PNG."""
    ink = np.asarray(
        Image.fromarray((np.pad(image, 2) * (255 / 16)).astype(np.uint8)).resize(
            (IMAGE_SIDE, IMAGE_SIDE), Image.Resampling.BICUBIC
        )
    )
    paper = np.array(PAPER_COLOURS[number % len(PAPER_COLOURS)])
    pixels = paper - (ink / 255)[..., None] * (paper - np.array([38, 34, 96]))
    data = io.BytesIO()
    Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(data, "PNG")
    return data.getvalue()


if __name__ == "__main__":
    main()

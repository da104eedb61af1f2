"""The page in a browser, while programs run: wide and narrow, light and dark."""

import os
import signal
import threading

import pytest

import spartan_ng as np
from spartan_ng.apps.kmeans import kmeans
from tests.waiting import Gate, until
from tests.web.browser import CHROMIUM, browser

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")


@pytest.mark.slow
def test_people_see_workers_jobs_bytes_and_losses(temporary_files, tmp_path):
    over = threading.Event()

    gate = Gate(tmp_path / "gate")

    def held(block):
        gate.enter()
        return block

    def work():
        points = np.random.default_rng(0).random((40_000, 8)).persist()
        np.map(held, points, dtype=float).sum().item()
        while not over.is_set():
            kmeans(points, 5, tol=10.0)
            np.sort(points[:, 0] * 2)[5].item()

    with (
        np.config.override(small_bytes=0, progress=False, recover_s=None),
        np.cluster(4, threads=1) as cluster,
    ):
        url = np.page().url
        program = threading.Thread(target=work)
        program.start()
        try:
            with browser(tmp_path / "profile") as tab:
                tab.size(1400, 1000)
                tab.go(url)
                until(lambda: tab.run("document.querySelectorAll('#workers tbody tr').length") == 4)
                assert tab.run("location.search") == ""
                until(lambda: len(gate.arrived) >= 4)
                until(lambda: tab.run("document.querySelectorAll('#jobs .stage.running').length") == 1)
                tab.run("document.querySelector('.job button').click()")
                until(lambda: tab.run("document.querySelectorAll('#plan g.running').length") == 1)
                lit = "getComputedStyle(document.querySelector('#plan g[data-stage] rect')).strokeWidth"
                before = tab.run(lit)
                until(lambda: "held (test_looks.py:" in tab.text("#functions"))
                tab.picture(tmp_path / "running.png")
                gate.open()
                until(lambda: tab.run("document.querySelectorAll('#plan g.running').length") == 0)
                assert tab.run(lit) != before
                until(lambda: "done" in tab.text("#jobs"))
                until(lambda: "test_looks.py" in tab.text("#jobs"))
                until(lambda: "fold" in tab.text("#jobs") or "sort" in tab.text("#jobs"))
                tab.run("document.querySelector('.job button')?.click()")
                until(lambda: tab.run("document.querySelectorAll('#plan g[data-stage]').length") > 0)
                first = tab.run("total('received')")
                until(lambda: tab.run("total('received')") > first)
                assert tab.run("document.documentElement.scrollWidth") <= 1400
                tab.picture(tmp_path / "wide.png")
                assert tab.text("#losses") == "None."
                os.kill(cluster._processes.workers[1].pid, signal.SIGKILL)
                until(lambda: "is gone" in tab.text("#losses"))
                until(lambda: "are computed again" in tab.text("#losses"))
                canvas = "document.querySelector('#timeline')"
                for theme in ("light", "dark"):
                    tab.theme(theme)
                    tab.size(400, 800)
                    until(lambda: tab.run("document.documentElement.clientWidth") == 400)
                    assert tab.run("document.documentElement.scrollWidth") == 400
                    until(lambda: "(40000,)" in tab.text("#arrays"))
                    until(lambda: tab.run(f"{canvas}.width === {canvas}.clientWidth * devicePixelRatio"))
                    tab.picture(tmp_path / f"narrow-{theme}.png")
                colour = "getComputedStyle(document.body).backgroundColor"
                dark = tab.run(colour)
                tab.theme("light")
                until(lambda: tab.run(colour) != dark)
        finally:
            gate.open()
            over.set()
            program.join()

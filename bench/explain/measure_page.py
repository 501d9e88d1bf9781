#!/usr/bin/env python3
"""Opens a page of `snug explain --html` in headless Chromium and prints what it measures of itself (#measure): the load since the
page was asked for, and 200 frames each of zooming and panning and of other moments, as milliseconds of script with layout and
from frame to frame. Needs nothing but Python and Chromium (BROWSER)."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading

MARK = '"measured '
SECONDS = 180


def measured(page):
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        words = [os.environ.get("BROWSER", "/usr/bin/chromium"), "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
                 "--v=0", f"--user-data-dir={directory}", "--window-size=1400,1000", "--remote-debugging-port=0",
                 pathlib.Path(page).resolve().as_uri() + "#measure"]  # fmt: skip
        browser = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, errors="replace")
        limit = threading.Timer(SECONDS, browser.kill)
        limit.start()
        try:
            for line in browser.stderr:
                if "CONSOLE" in line and MARK in line:
                    return json.loads(line.split(MARK, 1)[1].rsplit('", source:', 1)[0])
                if "CONSOLE" in line:
                    sys.exit(f"measure_page: {line.strip()}")
            sys.exit(f"measure_page: nothing was measured within {SECONDS} s")
        finally:
            limit.cancel()
            browser.terminate()
            browser.wait()


def main():
    told = measured(sys.argv[1])
    print(f"{told['events']} events, {told['blocks']} blocks; loaded in {told['load'] / 1000:.2f} s")
    for name, what in (("zoom", "200 frames of zoom and pan"), ("hover", "200 other moments")):
        script, between = told[name]["script"], told[name]["between"]
        print(f"{what}: script {script['median']:.1f} ms (worst {script['worst']:.1f}), from frame to frame {between['median']:.1f} ms "
              f"(worst {between['worst']:.1f})")  # fmt: skip


main()

"""Headless Chromium by the DevTools protocol over a pipe: enough to open a page, run scripts in it, press keys, draw it and see what it
asks of the network. Standard library alone."""

import base64
import http.server
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import threading
import time

CHROMIUM = "/usr/bin/chromium"


def serve(folder):
    """Serves a folder on a free port of this machine; gives its address and the server."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments, **named):
            super().__init__(*arguments, directory=str(folder), **named)

        def log_message(self, *arguments):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}", server


class Browser:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="snug-page-")
        to_it, self.out = os.pipe()
        self.into, from_it = os.pipe()

        def place_pipes():
            os.dup2(to_it, 63)
            os.dup2(from_it, 64)
            os.dup2(63, 3)
            os.dup2(64, 4)

        self.process = subprocess.Popen(
            [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--enable-precise-memory-info",
             f"--user-data-dir={self.folder}", "--window-size=1280,900", "about:blank"],
            preexec_fn=place_pipes, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_it)
        os.close(from_it)
        self.kept, self.number, self.events, self.session = b"", 0, [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log", "DOM"):
            self.call(f"{domain}.enable")
        self.call("Target.setAutoAttach", autoAttach=True, waitForDebuggerOnStart=False, flatten=True)

    def close(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def message(self, seconds):
        """The next message of the browser, or None after so long without one."""
        while b"\0" not in self.kept:
            if not select.select([self.into], [], [], seconds)[0]:
                return None
            piece = os.read(self.into, 1 << 20)
            if not piece:
                raise RuntimeError("the browser ended")
            self.kept += piece
        text, self.kept = self.kept.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, seconds=120, **parameters):
        self.number += 1
        number = self.number
        question = {"id": number, "method": method, "params": parameters}
        if self.session:
            question["sessionId"] = self.session
        data = json.dumps(question).encode() + b"\0"
        while data:
            data = data[os.write(self.out, data):]
        while True:
            message = self.message(seconds)
            if message is None:
                raise RuntimeError(f"{method}: no answer in {seconds} s")
            if message.get("id") == number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self.events.append(message)
            if message.get("method") == "Target.attachedToTarget" and self.session:
                self.watch_worker(message["params"]["sessionId"])

    def watch_worker(self, session):
        """What a worker asks of the network is told by a session of its own."""
        for method in ("Network.enable", "Log.enable"):
            self.number += 1
            os.write(self.out, json.dumps({"id": self.number, "method": method, "sessionId": session, "params": {}}).encode() + b"\0")

    def run(self, script, seconds=120):
        """The value of an expression in the page; of a promise, what it becomes."""
        result = self.call("Runtime.evaluate", seconds, expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(json.dumps(result["exceptionDetails"].get("exception", result["exceptionDetails"]))[:600])
        return result["result"].get("value")

    def wait(self, condition, seconds=60):
        """Until the expression is true; gives its value."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            value = self.run(condition)
            if value:
                return value
            time.sleep(0.02)
        raise RuntimeError(f"not in {seconds} s: {condition}; the console: {self.complaints()[:3]}")

    def open(self, address, width=1280, height=900, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=address)

    def key(self, name, text=None, shift=False):
        codes = {"Tab": 9, "Enter": 13, " ": 32, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        common = {"key": name, "code": {" ": "Space"}.get(name, name), "windowsVirtualKeyCode": codes.get(name, 0), "modifiers": 8 if shift else 0}
        if name == "Enter":
            text = "\r"
        self.call("Input.dispatchKeyEvent", type="keyDown", **common, **({"text": text or name} if text or name == " " else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def drop(self, path):
        """Gives a file to the page's chooser, as a drop does."""
        node = self.call("DOM.querySelector", nodeId=self.call("DOM.getDocument")["root"]["nodeId"], selector="#chooser")["nodeId"]
        self.call("DOM.setFileInputFiles", files=[str(path)], nodeId=node)

    def picture(self, path):
        size = {"width": self.run("innerWidth"), "height": self.run("document.documentElement.scrollHeight")}
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                         clip={"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1})
        pathlib.Path(path).write_bytes(base64.b64decode(shot["data"]))

    def requests(self):
        """Addresses that pages and workers asked for."""
        self.run("0")
        return [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]

    def renderer_peak(self):
        """The most memory, in bytes, that the process of the page ever held (Linux's VmHWM): the largest of those that draw pages."""
        peaks = [0]
        for status in pathlib.Path("/proc").glob("[0-9]*/status"):
            try:
                command = (status.parent / "cmdline").read_bytes()
                if b"--type=renderer" in command and self.folder.encode() in command:
                    peaks.append(1024 * int(next(line for line in status.read_text().splitlines() if line.startswith("VmHWM")).split()[1]))
            except OSError:
                continue
        return max(peaks)

    def complaints(self):
        """Errors and warnings of the console, and of the browser itself."""
        self.run("0")
        said = [e["params"]["entry"]["text"] for e in self.events if e.get("method") == "Log.entryAdded"]
        said += [str(e["params"]["args"]) for e in self.events if e.get("method") == "Runtime.consoleAPICalled" and e["params"]["type"] in ("error", "warning")]
        return said + [str(e["params"]["exceptionDetails"]) for e in self.events if e.get("method") == "Runtime.exceptionThrown"]

"""Pictures of an ask page in its states, wide and narrow, light and dark: what the README shows, and all the others to be
looked at. Needs Chromium, nothing else.

    querent page runs/clinic/model.safetensors --target 0.9 -o ask.html
    python3 tools/ask_pictures.py ask.html pictures/
    # of these, the README has question-wide-light.png, question-narrow-dark.png, and states.jpg, which is all of them
"""

import base64
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

LOOKS = {"wide-light": (1000, False), "wide-dark": (1000, True), "narrow-light": (360, False), "narrow-dark": (360, True)}


class Browser:
    """Chromium through its debugging pipe."""

    def __init__(self, profile):
        shell = 'exec chromium "$@" 3<&0 4>&1 0</dev/null 1>/dev/null'
        flags = ["--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        self.child = subprocess.Popen(
            ["sh", "-c", shell, "sh", *flags, f"--user-data-dir={profile}", "about:blank"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )
        self.heard, self.calls, self.session = b"", 0, None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def call(self, method, **params):
        self.calls += 1
        message = {"id": self.calls, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        self.child.stdin.write(json.dumps(message).encode() + b"\0")
        self.child.stdin.flush()
        while True:
            while b"\0" not in self.heard:
                more = os.read(self.child.stdout.fileno(), 1 << 20)
                if not more:
                    raise SystemExit("the browser has ended")
                self.heard += more
            text, self.heard = self.heard.split(b"\0", 1)
            said = json.loads(text)
            if said.get("id") == self.calls:
                if "error" in said:
                    raise SystemExit(f"{method}: {said['error']}")
                return said["result"]

    def eval(self, text):
        done = self.call("Runtime.evaluate", expression=text, returnByValue=True, userGesture=True)
        if "exceptionDetails" in done:
            raise SystemExit(f"{text}: {done['exceptionDetails']}")
        return done["result"].get("value")

    def press(self, name):
        self.eval(f"document.getElementById('{name}').click()")

    def fill(self, *cells):
        """Types into the text fields of the question, in order, and goes on."""
        fields = "[...document.querySelectorAll('#fields input[type=text]')].filter((f) => f.offsetParent)"
        for index, cell in enumerate(cells):
            self.eval(f"{fields}[{index}].value = {json.dumps(cell)}")
        self.press("next")

    def choose(self, word):
        choices = "[...document.querySelectorAll('#fields .choice, #fields .choices button')]"
        self.eval(f"{choices}.find((c) => c.textContent === {json.dumps(word)}).click()")

    def wait(self, condition):
        while not self.eval(condition):
            time.sleep(0.05)

    def pictures(self, folder, state):
        for look, (width, is_dark) in LOOKS.items():
            scheme = "dark" if is_dark else "light"
            features = [{"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"}]
            self.call("Emulation.setEmulatedMedia", features=features)
            for height in (700, None):
                # As high as it is at that width.
                height = height or self.eval("document.documentElement.scrollHeight")
                self.call(
                    "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
                )
            time.sleep(0.3)
            picture = self.call("Page.captureScreenshot", format="png")["data"]
            (folder / f"{state}-{look}.png").write_bytes(base64.b64decode(picture))


def sheet(browser, folder, states, end="top"):
    """All pictures of these states on one, `states.jpg`: a line each, and of what is long one end."""
    widths = {look: 400 if width > 500 else 144 for look, (width, _) in LOOKS.items()}
    lines = "".join(
        f"<h2>{words}</h2><div>" + "".join(
            f'<img src="{state}-{look}.png" width="{width}">' for look, width in widths.items()
        ) + "</div>"
        for state, words in states.items()
    )
    style = (
        "body { margin: 12px; width: 1124px; font: 13px sans-serif } h2 { font-size: 14px; margin: 10px 0 4px }"
        "div { display: flex; gap: 12px } img { height: 290px; object-fit: cover; border: 1px solid #999; "
        f"object-position: {end} }}"
    )
    (folder / "states.html").write_text(f"<!doctype html><meta charset=utf-8><style>{style}</style>{lines}")
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
    browser.call("Emulation.setDeviceMetricsOverride", width=1148, height=300, deviceScaleFactor=1, mobile=False)
    browser.call("Page.navigate", url=f"file://{(folder / 'states.html').resolve()}")
    browser.wait("document.readyState === 'complete' && [...document.images].every((image) => image.complete)")
    height = browser.eval("document.documentElement.scrollHeight")
    browser.call("Emulation.setDeviceMetricsOverride", width=1148, height=height, deviceScaleFactor=1, mobile=False)
    time.sleep(0.3)
    (folder / "states.jpg").write_bytes(base64.b64decode(browser.call("Page.captureScreenshot", format="jpeg", quality=75)["data"]))


STATES = {
    "known": "What is known from the start",
    "refused": "A cell that is no number",
    "why": "A question, and why it is asked",
    "put-off": "A question that was put off",
    "question": "Several values at once",
    "words": "A word to choose",
    "warned": "A number outside of what was seen",
    "answer": "The answer",
}


def main(page, folder):
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(profile)
        browser.call("Page.navigate", url=f"file://{page.resolve()}")
        browser.wait("document.querySelector('#all:not([hidden], [aria-busy])') !== null")
        browser.pictures(folder, "known")
        browser.choose("winter")
        browser.fill("thirty")
        browser.pictures(folder, "refused")
        browser.fill("31")
        browser.eval("document.getElementById('why').open = true")
        browser.pictures(folder, "why")
        browser.eval("document.getElementById('why').open = false")
        browser.press("later")
        browser.pictures(folder, "put-off")
        browser.press("back")
        browser.fill("38.9")
        browser.pictures(folder, "question")
        browser.press("unavailable")
        browser.pictures(folder, "words")
        browser.press("back")
        browser.fill("20", "51")
        browser.pictures(folder, "warned")
        browser.press("back")
        browser.fill("20", "5.1")
        browser.pictures(folder, "answer")
        sheet(browser, folder, STATES)
        browser.child.kill()
        browser.child.wait()


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))

"""Pictures of the studio page in its states, wide and narrow, light and dark: what the README shows, and all the others to be
looked at. Needs Chromium and web/dist, nothing else.

    sh web/studio/build.sh
    python3 tools/studio_pictures.py pictures/
    # of these, the README has part-trained.png, docs/web.md part-looked.png, part-narrow.png, and states.jpg, which is all
"""

import base64
import functools
import http.server
import pathlib
import sys
import tempfile
import threading

from ask_pictures import Browser, sheet

DIST = pathlib.Path(__file__).parent.parent / "web" / "dist"


STATES = {
    "first": "The beginning",
    "refused-table": "A table that cannot be read",
    "looked": "What can be asked",
    "refused": "A setting that there is not",
    "training": "Training",
    "trained": "The model",
    "asking": "Asking it",
    "reported": "Its report",
}


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def shown(name):
    return f"!document.getElementById('{name}').closest('[hidden]')"


def drop(browser, name, text):
    """Drops a file onto the page."""
    browser.eval(
        f"(() => {{ const moved = new DataTransfer(); moved.items.add(new File(['{text}'], '{name}'));"
        " document.getElementById('drop').dispatchEvent(new DragEvent('drop', { dataTransfer: moved, bubbles: true, cancelable: true })); })()"
    )


def part(browser, path, first, last, width, is_dark):
    """The page from the top of one element to the bottom of another."""
    scheme = "dark" if is_dark else "light"
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
    edge = "document.getElementById('{}').getBoundingClientRect().{} + scrollY"
    top, bottom = browser.eval(edge.format(first, "top")), browser.eval(edge.format(last, "bottom"))
    clip = {"x": 0, "y": top - 8, "width": width, "height": bottom - top + 16, "scale": 1}
    picture = browser.call("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)["data"]
    path.write_bytes(base64.b64decode(picture))


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=DIST))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(profile)
        browser.call("Page.navigate", url=f"http://127.0.0.1:{server.server_port}/")
        browser.wait("document.readyState === 'complete' && document.getElementById('clinic') !== null")
        browser.pictures(folder, "first")
        drop(browser, "bad.csv", "age,diagnosis\\n31,flu\\n44\\n")
        browser.wait("document.getElementById('look-refusal').textContent !== ''")
        browser.pictures(folder, "refused-table")
        browser.press("clinic")
        browser.wait(shown("training"))
        browser.pictures(folder, "looked")
        part(browser, folder / "part-looked.png", "looking", "looking", 1000, True)
        browser.eval("document.getElementById('settings').value = 'stage_epoch=1'")
        browser.press("begin")
        browser.wait("document.getElementById('train-refusal').textContent !== ''")
        browser.pictures(folder, "refused")
        browser.eval("document.getElementById('settings').value = ''")
        browser.eval("document.getElementById('length').value = 'short'")
        browser.press("begin")
        browser.wait("document.querySelectorAll('#heat .cell').length > 0 && document.querySelectorAll('#trade .dot').length > 0")
        browser.pictures(folder, "training")
        browser.wait(shown("tested"))
        browser.pictures(folder, "trained")
        part(browser, folder / "part-trained.png", "training", "result", 1000, False)
        part(browser, folder / "part-narrow.png", "training", "training", 360, True)
        browser.press("ask")
        asks = "#asking-here iframe"
        browser.wait(f"!!document.querySelector('{asks}')?.contentDocument?.querySelector('#all:not([hidden], [aria-busy])')")
        browser.pictures(folder, "asking")
        browser.press("report")
        browser.wait("document.querySelector('#report-here iframe')?.contentDocument?.querySelector('svg') !== undefined")
        browser.pictures(folder, "reported")
        sheet(browser, folder, STATES, "bottom")
        browser.child.kill()
        browser.child.wait()


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))

"""A Chromium that may talk to loopback only, and the moves a person makes on the design desk."""

from __future__ import annotations

import contextlib
import http.server
import threading
from functools import partial
from pathlib import Path

from scantling_widgets.chromium import FLAGS, chromium

# a machine that does other work as well may be slow; nothing here waits when it need not
PATIENCE_MS = 60_000


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextlib.contextmanager
def serving(folder):
    """The address of a plain web server on loopback that holds `folder`."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def on_loopback(context) -> None:
    """Keep the requests of a browser context on this machine; those that tried to leave it are in
    `context.refused`."""
    context.refused = []

    def guard(route):
        url = route.request.url
        if url.startswith(("http://127.0.0.1", "ws://127.0.0.1", "data:", "blob:")):
            return route.continue_()
        context.refused.append(url)
        return route.abort()

    context.route("**/*", guard)


@contextlib.contextmanager
def browser(width: int = 1440, height: int = 900):
    """A browser context whose requests leave the machine never; those that tried are in
    `context.refused`."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        program = playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        try:
            context = program.new_context(
                viewport={"width": width, "height": height}, accept_downloads=True
            )
            on_loopback(context)
            yield context
        finally:
            program.close()


class DeskPage:
    """The design desk in a browser page."""

    def __init__(self, page):
        self.page = page
        self.actions = (
            0  # gestures of a person so far: a click, a drag, a choice, a key, a line typed
        )
        self.errors: list[str] = []
        page.on("console", lambda m: self.errors.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda e: self.errors.append(f"uncaught: {e}"))

    def open(self, url: str) -> DeskPage:
        self.page.goto(url, wait_until="domcontentloaded", timeout=2 * PATIENCE_MS)
        self.page.wait_for_function(
            "() => document.querySelectorAll('.sd-chart[data-revision] svg').length >= 2",
            timeout=2 * PATIENCE_MS,
        )
        self.settle()
        return self

    def settle(self) -> None:
        """Wait until the kernel has answered the last move and the charts have drawn it."""
        self.page.wait_for_function(
            """() => {
            const form = document.querySelector('.sd-form');
            const charts = [...document.querySelectorAll('.sd-chart')].filter(c => c.clientWidth);
            const now = JSON.stringify([form?.dataset.answered, form?.dataset.sent, ...charts.map(c => c.dataset.revision)]);
            const still = window.__sdSeen === now; window.__sdSeen = now;
            return still && Number(form.dataset.sent ?? 0) <= Number(form.dataset.answered)
                && form.dataset.drawn === document.querySelector('.sd-strip-host').dataset.revision;
        }""",  # noqa: E501
            polling=120,
            timeout=PATIENCE_MS,
        )

    def afresh(self) -> None:
        """Back to the design the desk opened with, no reference, the first tab in front."""
        self.errors.clear()
        self.go_up()
        self.page.evaluate(
            "() => { document.querySelectorAll('details.sd-group').forEach(d => { "
            "d.open = false; }); document.querySelector('.sd-left').scrollTop = 0; }"
        )
        self.page.keyboard.press("Escape")
        if self.button("Clear reference").count():
            self.press_button("Clear reference")
        if self.button("Reset").is_enabled():
            self.press_button("Reset")
        self.tab("Plans")
        self.actions = 0

    def button(self, name: str):
        return self.page.locator(".sd-desk button", has_text=name).first

    def press_button(self, name: str) -> None:
        """Press a button that changes what the headline shows, and wait until it does."""
        strip = self.page.locator(".sd-strip-host")
        self.button(name).wait_for()  # an offer comes with the advice, which draws the strip again
        shown = strip.get_attribute("data-revision")
        self.actions += 1
        self.button(name).click()
        self.page.wait_for_function(
            "shown => document.querySelector('.sd-strip-host').dataset.revision !== shown",
            arg=shown,
            timeout=PATIENCE_MS,
        )
        self.settle()

    def run(self, code: str) -> None:
        """Run code in a cell of its own at the end of the notebook around the desk."""
        if self.page.locator(".jp-CodeCell").count() == 1:
            self.page.evaluate(
                """async () => {
                const app = window.jupyterapp, book = app.shell.currentWidget.content;
                book.activeCellIndex = book.widgets.length - 1;
                await app.commands.execute('notebook:insert-cell-below');
            }"""
            )
            self.page.wait_for_function(
                "() => document.querySelectorAll('.jp-CodeCell').length === 2"
            )
        self.page.locator(".jp-CodeCell").last.locator(".cm-content").click()
        self.page.keyboard.press("Control+A")
        self.page.keyboard.type(code)
        self.page.keyboard.press("Control+Enter")
        self.page.wait_for_function(
            "() => !/\\*/.test([...document.querySelectorAll('.jp-CodeCell "
            ".jp-InputPrompt')].pop().textContent)"
        )
        self.go_up()

    def kpi(self, key: str) -> str:
        return (
            self.page.locator(f"[data-kpi='{key}'] .sd-kpi-value")
            .inner_text()
            .replace("\n", " ")
            .strip()
        )

    def note(self, key: str) -> str:
        return self.page.locator(f"[data-kpi='{key}'] .sd-kpi-note").inner_text()

    def control(self, field: str):
        return self.page.locator(f".sd-row[data-field='{field}'] :is(input, select)").first

    def readout(self, field: str) -> str:
        return self.page.locator(f".sd-row[data-field='{field}'] output").inner_text()

    def chart(self, which: int):
        """The memory picture (0) or the step picture (1)."""
        return self.page.locator(".sd-chart").nth(which)

    def embeds(self) -> list[str]:
        return [self.chart(i).get_attribute("data-embeds") for i in (0, 1)]

    def marks(self, which: int) -> str:
        """The drawn shapes of a picture, to see that they changed."""
        return self.chart(which).evaluate(
            "e => [...e.querySelectorAll('svg path')].map(p => p.getAttribute('d')).join('|')"
        )

    def drag(self, field: str, share: float, moves: int = 12) -> None:
        """Drag a slider's thumb by the mouse to a share of its length, from where it is."""
        control = self.control(field)
        control.scroll_into_view_if_needed()
        box = control.bounding_box()
        at, last = control.evaluate("e => [e.valueAsNumber, Number(e.max)]")
        thumb = 16
        self.actions += 1
        x = lambda part: box["x"] + thumb / 2 + part * (box["width"] - thumb)
        y = box["y"] + box["height"] / 2
        self.page.mouse.move(x(at / last), y)
        self.page.mouse.down()
        self.page.mouse.move(x(share), y, steps=moves)
        self.page.mouse.up()
        self.settle()

    def press(self, field: str, key: str, times: int = 1) -> None:
        """Move a control by the keyboard."""
        self.control(field).focus()
        for _ in range(times):
            self.actions += 1
            self.page.keyboard.press(key)
        self.settle()

    def slide(self, field: str, text: str) -> None:
        """Bring a slider to the value that reads `text`: by the mouse near it, then by arrow
        keys."""
        control = self.control(field)
        self.drag(field, self.place(field, text), moves=6)
        for _ in range(12):
            if (now := self.readout(field)) == text:
                return
            at, there = (
                control.evaluate("e => e.valueAsNumber"),
                self.place(field, text) * control.evaluate("e => Number(e.max)"),
            )
            self.press(field, "ArrowRight" if there > at else "ArrowLeft")
        raise AssertionError(f"{field} stands at {now}, not at {text}")

    def place(self, field: str, text: str) -> float:
        """Where on a slider a value stands, as a share of its length."""
        return self.control(field).evaluate(
            (
                "(e, text) => { const all = JSON.parse(e.dataset.texts); return "
                "all.indexOf(text) / (all.length - 1); }"
            ),
            text,
        )

    def choose(self, field: str, label: str) -> None:
        """Choose from a list."""
        self.actions += 1
        self.control(field).select_option(label=label)
        self.settle()

    def unfold(self, title: str) -> None:
        """Open a folded group of inputs."""
        group = self.page.locator(
            "details.sd-group", has=self.page.locator("summary", has_text=title)
        )
        if group.get_attribute("open") is None:
            self.actions += 1
            group.locator("summary").click()

    def type(self, field: str, text: str) -> None:
        """Type a number and press Enter."""
        self.actions += 1
        self.control(field).fill(text)
        self.page.keyboard.press("Enter")
        self.settle()

    def work(self, name: str) -> None:
        """Press the button of a long work and wait for its end."""
        self.actions += 1
        self.page.get_by_role("button", name=name, exact=True).locator("visible=true").first.click()
        self.ended(name)

    def ended(self, name: str) -> None:
        self.page.wait_for_timeout(200)
        self.page.wait_for_function(
            (
                "name => { const b = [...document.querySelectorAll('.sd-desk "
                "button')].find(b => b.offsetParent && b.textContent.trim() === name); "
                "return b && !b.disabled; }"
            ),
            arg=name,
            timeout=2 * PATIENCE_MS,
        )
        self.settle()

    def cell(self, table: str, text: str):
        """The button in a table, by the table's name and what the button says."""
        return self.page.get_by_role("region", name=table).get_by_role("button", name=text).first

    def pick(self, table: str, text: str) -> None:
        """Press a button in a table that changes the design."""
        strip = self.page.locator(".sd-strip-host")
        shown = strip.get_attribute("data-revision")
        self.actions += 1
        self.cell(table, text).click()
        self.page.wait_for_function(
            "shown => document.querySelector('.sd-strip-host').dataset.revision !== shown",
            arg=shown,
            timeout=PATIENCE_MS,
        )
        self.settle()

    def tab(self, title: str) -> None:
        self.actions += 1
        tab = self.page.locator(".sd-desk [role=tab]", has_text=title).first
        if tab.get_attribute("aria-selected") != "true":
            shown = self.page.locator(".sd-form").get_attribute("data-shown")
            tab.click()
            self.page.wait_for_function(
                "shown => document.querySelector('.sd-form').dataset.shown !== shown",
                arg=shown,
                timeout=2 * PATIENCE_MS,
            )
        self.settle()

    def design_text(self) -> str:
        """The design on the desk as its file, read from the tab that shows it."""
        self.tab("File and report")
        return self.page.locator(".sd-desk .sd-code textarea").first.input_value()

    def dark(self) -> None:
        """Switch JupyterLab to its dark theme and wait for the charts to follow."""
        self.theme("JupyterLab Dark")

    def light(self) -> None:
        self.theme("JupyterLab Light")

    def theme(self, name: str) -> None:
        drawn = self.chart(0).get_attribute("data-embeds")
        if self.page.evaluate("() => document.body.dataset.jpThemeName") == name:
            return
        self.page.evaluate(
            "name => window.jupyterapp.commands.execute('apputils:change-theme', { theme: name })",
            name,
        )
        self.page.wait_for_function(
            "drawn => document.querySelector('.sd-chart').dataset.embeds !== drawn",
            arg=drawn,
            timeout=PATIENCE_MS,
        )
        self.page.wait_for_timeout(
            1700
        )  # the last look of the charts at the colours comes 1.5 s after the name changed
        self.settle()

    def bring_up(self) -> None:
        """Scroll so that the tab in front fills the page below the headline."""
        self.page.evaluate("""() => {
            const tab = document.querySelector('.sd-desk .sd-tabs'), page = tab.closest('.jp-WindowedPanel-outer, .lm-BoxPanel-child');
            page.scrollTop += tab.getBoundingClientRect().top - page.getBoundingClientRect().top - 84;
        }""")  # noqa: E501
        self.page.wait_for_timeout(150)

    def go_up(self) -> None:
        self.page.evaluate(
            "() => { "
            "document.querySelector('.sd-desk').closest('.jp-WindowedPanel-outer, "
            ".lm-BoxPanel-child').scrollTop = 0; }"
        )

    def picture(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.page.mouse.move(2, 2)
        self.page.evaluate("() => document.activeElement?.blur()")
        self.page.screenshot(path=path)

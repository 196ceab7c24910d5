"""`scantling lab` and `scantling page`: the design desk in JupyterLab, and as a page through Voilà.

Both listen on loopback only, keep Jupyter's token, need no network, and end with the child they
started.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from scantling.base.errors import DesignError
from scantling.base.records import Lines, record
from scantling.design.design import Design
from scantling.plans.prepare import prepare

from . import resources

LOOPBACK = "127.0.0.1"
BOOK = "design_desk.ipynb"
_LABEXTENSIONS = Path(__file__).parent / "labextensions"
_CONFIG = (
    Path(__file__).parent / "jupyter"
)  # what JupyterLab must not ask or fetch; below `data`, the page's template
_START_S = 90
# what Jupyter's server, and Voilà, tell the kernels behind their pages
PAGE_SIGNS = ("JPY_SESSION_NAME", "SERVER_SOFTWARE")


def served() -> bool:
    """Whether this kernel works for a visitor of the page: what is saved goes to the visitor, and
    no path that is typed there is opened."""
    return os.environ.get("SERVER_SOFTWARE", "").startswith("voila")


@record
class Server:
    """A server that runs: its process, and the address with its token that a browser opens."""

    process: subprocess.Popen
    url: str
    base: str
    token: str


def free_port(preferred: int) -> int:
    """The preferred port, or the next free one."""
    for port in range(preferred, preferred + 200):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
            return port
    raise DesignError("--port", preferred, "a port that is free; none is within the next 200")


def design_path(file: str | None) -> Path:
    """The design file to open, read once so that a wrong one is refused before a server starts."""
    path = Path(file).resolve() if file else resources.example()
    prepare(Design.read(path))
    return path


def _environment(design: Path, token: str, **more: str) -> dict[str, str]:
    env = {
        **os.environ,
        "JUPYTER_TOKEN": token,
        "SCANTLING_DESIGN": str(design),
        "JUPYTER_PLATFORM_DIRS": "1",
        **more,
    }
    env["JUPYTER_CONFIG_PATH"] = os.pathsep.join(
        filter(None, [str(_CONFIG), env.get("JUPYTER_CONFIG_PATH")])
    )
    env["JUPYTER_PATH"] = os.pathsep.join(
        filter(None, [str(_CONFIG / "data"), env.get("JUPYTER_PATH")])
    )
    env["PATH"] = str(Path(sys.executable).parent) + os.pathsep + env.get("PATH", "")
    env["PYTHONWARNINGS"] = env.get("PYTHONWARNINGS", "ignore::DeprecationWarning")
    return env


@contextmanager
def _running(
    argv: list[str],
    env: dict[str, str],
    port: int,
    path: str,
    token: str,
    log,
) -> Iterator[Server]:
    """The child, once it answers; ended by a clean Jupyter shutdown (which ends its kernels), by
    force after 15 s."""
    process = subprocess.Popen(
        argv,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=2 if log is None else log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        _wait(process, port)
        base = f"http://{LOOPBACK}:{port}"
        yield Server(
            process=process,
            url=f"{base}{path}?token={token}",
            base=base,
            token=token,
        )
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(5)


def _wait(process: subprocess.Popen, port: int) -> None:
    until = time.monotonic() + _START_S
    while time.monotonic() < until:
        if process.poll() is not None:
            raise DesignError(
                "",
                problem=(
                    f"the server ended with status {process.returncode}; its messages are above"
                ),
            )
        try:
            with socket.create_connection((LOOPBACK, port), timeout=1):
                return
        except OSError:
            time.sleep(0.1)
    raise DesignError("", problem=f"the server does not answer on port {port} after {_START_S} s")


def book_folder(folder: Path) -> tuple[Path, Path]:
    """(root of the file browser, notebook to open) for a desk that is started in `folder`.

    The notebook is a copy in that folder, so that it can be kept and edited; in a checkout of the
    kit it goes to `build/`,
    and where nothing can be written, to a folder of its own.
    """
    place = folder / "build" if (folder / "notebooks" / BOOK).is_file() else folder
    try:
        place.mkdir(
            parents=True,
            exist_ok=True,
        )
        if not (place / BOOK).is_file():
            shutil.copyfile(resources.notebook("design_desk"), place / BOOK)
    except OSError:
        folder = place = Path(tempfile.mkdtemp(prefix="scantling-lab-"))
        shutil.copyfile(resources.notebook("design_desk"), place / BOOK)
    return folder, place / BOOK


@contextmanager
def jupyter_lab(
    design: Path,
    folder: Path,
    *,
    port: int = 8888,
    extra: Lines = (),
    env: dict[str, str] | None = None,
    log=None,
) -> Iterator[Server]:
    """JupyterLab on the design desk, file browser at `folder`, for as long as the context is
    open."""
    root, book = book_folder(folder)
    token, port = secrets.token_urlsafe(24), free_port(port)
    state = book.parent / ".scantling" / f"{design.stem}-desk.yaml"
    argv = [
        sys.executable,
        "-m",
        "jupyterlab",
        "--no-browser",
        f"--ServerApp.ip={LOOPBACK}",
        f"--ServerApp.port={port}",
        "--ServerApp.port_retries=0",
        f"--ServerApp.root_dir={root}",
        "--LabApp.news_url=None",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.extension_manager=readonly",
        f"--LabApp.extra_labextensions_path={_LABEXTENSIONS}",
        *_as_root("--ServerApp.allow_root=True"),
        *extra,
    ]
    environment = {
        **_environment(design, token, SCANTLING_AUTOSAVE=str(state)),
        **(env or {}),
    }
    with _running(
        argv,
        environment,
        port,
        f"/doc/tree/{book.relative_to(root).as_posix()}",
        token,
        log,
    ) as server:
        yield server


@contextmanager
def voila_page(
    design: Path,
    *,
    port: int = 8866,
    theme: str = "light",
    env: dict[str, str] | None = None,
    log=None,
) -> Iterator[Server]:
    """The desk as a page without code; every visitor gets a desk of his own."""
    token, port = secrets.token_urlsafe(24), free_port(port)
    with tempfile.TemporaryDirectory(prefix="scantling-page-") as folder:
        book = Path(folder) / BOOK
        book.write_text(_code_only(resources.notebook("design_desk")), encoding="utf-8")
        argv = [
            sys.executable,
            "-m",
            "voila",
            str(book),
            "--no-browser",
            f"--Voila.ip={LOOPBACK}",
            f"--port={port}",
            "--token",
            "--strip_sources=True",
            f"--theme={theme}",
            "--template=scantling",
            "--preheat_kernel=True",
            "--pool_size=1",
            "--VoilaConfiguration.show_tracebacks=False",
        ]
        with _running(
            argv,
            {
                **_environment(design, token),
                **(env or {}),
            },
            port,
            "/",
            token,
            log,
        ) as server:
            yield server


def _code_only(book: Path) -> str:
    """The notebook without its words for people who see code."""
    data = json.loads(book.read_text(encoding="utf-8"))
    data["cells"] = [cell for cell in data["cells"] if cell["cell_type"] == "code"]
    return json.dumps(data)


def _as_root(*flags: str) -> Lines:
    return flags if hasattr(os, "geteuid") and os.geteuid() == 0 else ()


def _serve(
    starting,
    what: str,
    browser: bool,
) -> int:
    """Say where the server is, and stay until it ends or is told to."""
    signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    try:
        with starting as server:
            click.echo(f"{what}: {server.url}")
            click.echo("Stop it with Ctrl-C.")
            if browser and sys.stdout.isatty():
                webbrowser.open(server.url)
            return server.process.wait()
    except KeyboardInterrupt:
        return 0


@click.command()
@click.argument("file", required=False)
@click.option(
    "--port",
    default=8888,
    show_default=True,
    help="port on loopback; the next free one where it is taken",
)
@click.option(
    "--browser/--no-browser",
    default=True,
    help="open a browser, when started from a terminal",
)
@click.pass_context
def lab(
    ctx,
    file,
    port,
    browser,
):
    """Open JupyterLab on the design desk, on FILE or on the example design. The notebook is put in
    the current folder."""
    ctx.exit(
        _serve(
            jupyter_lab(design_path(file), Path.cwd(), port=port),
            "The design desk in JupyterLab",
            browser,
        )
    )


@click.command()
@click.argument("file", required=False)
@click.option(
    "--port",
    default=8866,
    show_default=True,
    help="port on loopback; the next free one where it is taken",
)
@click.option(
    "--theme",
    type=click.Choice(["light", "dark"]),
    default="light",
    show_default=True,
)
@click.option(
    "--browser/--no-browser",
    default=True,
    help="open a browser, when started from a terminal",
)
@click.pass_context
def page(
    ctx,
    file,
    port,
    theme,
    browser,
):
    """Serve the design desk as a page, without code, on FILE or on the example design."""
    ctx.exit(
        _serve(
            voila_page(
                design_path(file),
                port=port,
                theme=theme,
            ),
            "The design desk as a page",
            browser,
        )
    )

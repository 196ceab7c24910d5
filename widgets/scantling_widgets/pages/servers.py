"""`scantling lab` and `scantling page`: the design desk in JupyterLab, and as a page through Voilà.

Both listen on loopback only, keep Jupyter's token, need no network, and end with the child they
started.
"""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import webbrowser
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from json import dumps, loads
from pathlib import Path
from time import monotonic, sleep
from typing import IO

import click
from scantling.base.errors import DesignError
from scantling.base.records import record
from scantling.base.threads import as_given
from scantling.design.design import Design
from scantling.plans.prepare import prepare

from .. import shipped_files

LOOPBACK = "127.0.0.1"
BOOK = "design_desk.ipynb"
_LABEXTENSIONS = Path(__file__).parents[1] / "labextensions"
# what JupyterLab must not ask or fetch; below `data`, the page's template
_CONFIG = Path(__file__).parents[1] / "jupyter"
_START_S = 90
_LAST = 40  # lines of a server that failed
# what Jupyter's server, and Voilà, tell the kernels behind their pages
PAGE_SIGNS = ("JPY_SESSION_NAME", "SERVER_SOFTWARE")


@record
class Server:
    """A server that runs: its process, and the address with its token that a browser opens."""

    process: subprocess.Popen[bytes]
    url: str
    base: str
    token: str


PORTS = 65_535  # the last there is


def free_port(preferred: int) -> int:
    """The preferred port, or the next free one."""
    for port in range(preferred, min(preferred + 200, PORTS + 1)):
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
    path = Path(file).resolve() if file else shipped_files.example()
    prepare(Design.read(path))
    return path


def _environment(around: Mapping[str, str], design: Path, token: str) -> dict[str, str]:
    """The child's environment; its own folders stand before those that are there already."""
    paths = {
        "JUPYTER_CONFIG_PATH": _CONFIG,
        "JUPYTER_PATH": _CONFIG / "data",
        "PATH": Path(sys.executable).parent,
    }
    joined = {
        name: os.pathsep.join(filter(None, (str(own), around.get(name))))
        for name, own in paths.items()
    }
    return {
        "PYTHONWARNINGS": "ignore::DeprecationWarning",
        **around,
        **joined,
        "JUPYTER_TOKEN": token,
        "SCANTLING_DESIGN": str(design),
        "JUPYTER_PLATFORM_DIRS": "1",
    }


@contextmanager
def _running(
    module: str,
    flags: Iterable[str],
    design: Path,
    port: int,
    path: str = "/",
    around: Mapping[str, str] = os.environ,
    **env: str,
) -> Iterator[Server]:
    """The child, once it answers; ended by a clean Jupyter shutdown (which ends its kernels), by
    force after 15 s. What it prints is shown where it fails."""
    token = secrets.token_urlsafe(24)
    log = tempfile.TemporaryFile()
    process = subprocess.Popen(
        [sys.executable, "-m", module, "--no-browser", "--Application.log_level=40", *flags],
        env=_environment(around, design, token) | env,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        _wait(process, port)
        base = f"http://{LOOPBACK}:{port}"
        yield Server(process=process, url=f"{base}{path}?token={token}", base=base, token=token)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(5)
        elif process.returncode:
            _tell(log)
        log.close()


def _tell(log: IO[bytes]) -> None:
    """What a server that failed had to say."""
    log.seek(0)
    for line in log.read().decode(errors="replace").splitlines()[-_LAST:]:
        click.echo(line, err=True)


def _wait(process: subprocess.Popen[bytes], port: int) -> None:
    until = monotonic() + _START_S
    while monotonic() < until:
        if process.poll() is not None:
            ended = f"the server ended with status {process.returncode}; its messages are above"
            raise DesignError(problem=ended)
        try:
            with socket.create_connection((LOOPBACK, port), timeout=1):
                return
        except OSError:
            sleep(0.1)
    raise DesignError(problem=f"the server does not answer on port {port} after {_START_S} s")


def book_folder(folder: Path) -> tuple[Path, Path]:
    """(root of the file browser, notebook to open) for a desk that is started in `folder`.

    The notebook is a copy in that folder, so that it can be kept and edited; in a checkout of the
    kit it goes to `build/`, and where nothing can be written, to a folder of its own.
    """
    place = folder / "build" if (folder / "notebooks" / BOOK).is_file() else folder
    try:
        place.mkdir(parents=True, exist_ok=True)
        if not (place / BOOK).is_file():
            shutil.copyfile(shipped_files.notebook("design_desk"), place / BOOK)
    except OSError:
        folder = place = Path(tempfile.mkdtemp(prefix="scantling-lab-"))
        shutil.copyfile(shipped_files.notebook("design_desk"), place / BOOK)
    return folder, place / BOOK


@contextmanager
def jupyter_lab(design: Path, folder: Path, *, port: int = 8888) -> Iterator[Server]:
    """JupyterLab on the design desk, file browser at `folder`, for as long as the context is
    open."""
    (root, book), port = book_folder(folder), free_port(port)
    state = book.parent / ".scantling" / f"{design.stem}-desk.yaml"
    flags = (
        f"--ServerApp.ip={LOOPBACK}",
        f"--ServerApp.port={port}",
        "--ServerApp.port_retries=0",
        f"--ServerApp.root_dir={root}",
        "--LabApp.news_url=None",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.extension_manager=readonly",
        f"--LabApp.extra_labextensions_path={_LABEXTENSIONS}",
        f"--ServerApp.allow_root={hasattr(os, 'geteuid') and os.geteuid() == 0}",
    )
    with _running(
        "jupyterlab",
        flags,
        design,
        port,
        f"/doc/tree/{book.relative_to(root).as_posix()}",
        as_given(os.environ),  # its kernels run the reader's own code
        SCANTLING_AUTOSAVE=str(state),
    ) as server:
        yield server


@contextmanager
def voila_page(design: Path, *, port: int = 8866, theme: str = "system") -> Iterator[Server]:
    """The desk as a page without code; every visitor gets a desk of his own. It is light or dark as
    the reader's system, or as `theme` says."""
    port = free_port(port)
    with tempfile.TemporaryDirectory(prefix="scantling-page-") as folder:
        book = Path(folder) / BOOK
        book.write_text(_code_only(shipped_files.notebook("design_desk")), encoding="utf-8")
        flags = (
            str(book),
            f"--Voila.ip={LOOPBACK}",
            f"--port={port}",
            "--token",
            "--strip_sources=True",
            f"--theme={'light' if theme == 'system' else theme}",
            f"--VoilaConfiguration.resources=scantling_theme={theme}",
            "--template=scantling",
            "--preheat_kernel=True",
            "--pool_size=1",
            "--VoilaConfiguration.show_tracebacks=False",
        )
        kernels = "scantling_widgets.pages.visitor_kernels"
        with _running(kernels, flags, design, port, SCANTLING_SERVED="1") as server:
            yield server


def _code_only(book: Path) -> str:
    """The notebook without its words for people who see code."""
    data = loads(book.read_text(encoding="utf-8"))
    data["cells"] = [cell for cell in data["cells"] if cell["cell_type"] == "code"]
    return dumps(data)


def _serve(starting: AbstractContextManager[Server], what: str, browser: bool) -> None:
    """Say where the server is, and stay until it ends or is told to."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    status = 0
    try:
        with starting as server:
            click.echo(f"{what}: {server.url}")
            click.echo("Stop it with Ctrl-C.")
            if browser and sys.stdout.isatty():
                webbrowser.open(server.url)
            status = server.process.wait()
    except KeyboardInterrupt:
        pass
    click.get_current_context().exit(status)


@click.command()
@click.argument("file", required=False)
@click.option(
    "--port",
    type=click.IntRange(1, PORTS),
    default=8888,
    show_default=True,
    help="port on loopback; the next free one where it is taken",
)
@click.option(
    "--browser/--no-browser", default=True, help="open a browser, when started from a terminal"
)
def lab(file: str | None, port: int, browser: bool) -> None:
    """Open JupyterLab on the design desk, on FILE or on the example design. The notebook is put in
    the current folder."""
    starting = jupyter_lab(design_path(file), Path.cwd(), port=port)
    _serve(starting, "The design desk in JupyterLab", browser)


@click.command()
@click.argument("file", required=False)
@click.option(
    "--port",
    type=click.IntRange(1, PORTS),
    default=8866,
    show_default=True,
    help="port on loopback; the next free one where it is taken",
)
@click.option(
    "--theme",
    type=click.Choice(["system", "light", "dark"]),
    default="system",
    show_default=True,
    help="colours of the page: as the reader's system, or always light or dark",
)
@click.option(
    "--browser/--no-browser", default=True, help="open a browser, when started from a terminal"
)
def page(file: str | None, port: int, theme: str, browser: bool) -> None:
    """Serve the design desk as a page, without code, on FILE or on the example design."""
    starting = voila_page(design_path(file), port=port, theme=theme)
    _serve(starting, "The design desk as a page", browser)

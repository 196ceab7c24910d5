"""A page printed to PDF by the browser that is there."""

import os
import subprocess
import tempfile
from pathlib import Path

from ..chromium import FLAGS


def print_pdf(browser: str, page: Path, paper: str = "A4") -> bytes:
    """The HTML file `page` as a PDF on `paper` (a CSS page size: A4, Letter), without headers, the
    network left alone.

    The page itself names no paper, so that whoever prints it from a browser has the choice.
    """
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    with tempfile.TemporaryDirectory(prefix="scantling-print-") as scratch:
        target, sheet = Path(scratch) / "page.pdf", Path(scratch) / "page.html"
        sheet.write_text(
            page.read_text(encoding="utf-8").replace(
                "</head>", f"<style>@page {{ size: {paper}; }}</style></head>", 1
            ),
            encoding="utf-8",
        )
        command = [
            browser,
            *(flag for flag in FLAGS if root or flag != "--no-sandbox"),
            "--headless",
            f"--user-data-dir={scratch}/profile",
            "--no-pdf-header-footer",
            f"--print-to-pdf={target}",
            sheet.as_uri(),
        ]
        subprocess.run(command, check=True, capture_output=True, timeout=60)
        return target.read_bytes()

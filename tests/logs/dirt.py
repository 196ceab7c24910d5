"""Dirt that logs come with: each variant of a log is read as the log itself, or refused in one
line.

    python tests/logs/dirt.py LOG...
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import random
import re
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import scantling as sc
from scantling.base.errors import DesignError

FIGURES = (
    "step_s",
    "tokens_per_s_per_device",
    "tflops_per_device",
    "peak_memory_gb",
    "devices",
    "seq_len",
    "global_batch",
    "tp",
    "pp",
    "micro_batch",
)
NEAR = 0.03
STAMP = re.compile(rb"(\d{4}-\d\d-\d\d[ T_])(\d\d)(:\d\d:\d\d)")
SECRET = "hf_aBcDeFgHiJkLmNoPqRsTuVwXyZ012345"
REFUSED = {"zip", "bz2", "xz", "empty", "blank", "a binary", "html"}  # may be refused


def rng():
    return random.Random(7)


def lines(of):
    """A variant by lines: `of` takes (number, line) and gives one line or several."""

    def made(raw: bytes) -> bytes:
        return b"\n".join(of(i, line) for i, line in enumerate(raw.split(b"\n")))

    return made


def halfway(more: bytes):
    def made(raw: bytes) -> bytes:
        cut = raw.find(b"\n", len(raw) // 2) + 1
        return raw[:cut] + more + b"\n" + raw[cut:]

    return made


def hours(by: int, since: float = 0.5):
    """The clock `by` hours on (modulo a day) in what follows a share of the log."""

    def made(raw: bytes) -> bytes:
        cut = int(len(raw) * since)
        on = STAMP.sub(lambda m: m[1] + b"%02d" % ((int(m[2]) + by) % 24) + m[3], raw[cut:])
        return raw[:cut] + on

    return made


def zipped(raw: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("job.out", raw)
    return out.getvalue()


def shuffled(raw: bytes) -> bytes:
    """Neighbouring lines out of order, as ranks that share a file write them."""
    rows, draw = raw.split(b"\n"), rng()
    at = sorted(range(len(rows)), key=lambda i: i + draw.random() * 2)
    return b"\n".join(rows[i] for i in at)


def torn(raw: bytes) -> bytes:
    """One line in ten cut where another rank's began."""
    draw = rng()
    rows = raw.split(b"\n")
    return b"\n".join(
        row[: draw.randrange(len(row) or 1)] + b"[rank3]: " + rows[i // 2][:40]
        if draw.random() < 0.1
        else row
        for i, row in enumerate(rows)
    )


def noise(size: int) -> bytes:
    return rng().randbytes(size)


def restarted(raw: bytes) -> bytes:
    """The last third of the lines twice: a job that went back to its checkpoint."""
    rows = raw.split(b"\n")
    cut = 2 * len(rows) // 3
    return b"\n".join([*rows, b"Traceback (most recent call last):", *rows[cut:]])


def stamp_of(line: bytes) -> bytes:
    """The time stamp of a line as a runtime of containers writes it before the line."""
    found = re.search(rb"(\d{4}-\d\d-\d\d)[ T_](\d\d:\d\d:\d\d)[.,]?(\d*)", line)
    return b"%sT%s.%s" % (found[1], found[2], found[3] or b"0") if found else b"2026-01-01T10:00:00"


NUMBERED = rb"(?<=[\s:=])(\d+\.\d+)(?=[\s|,]|$)"
LONG = b"x" * 10_000_000
VARIANTS = {
    "crlf": lambda raw: raw.replace(b"\n", b"\r\n"),
    "cr alone": lambda raw: raw.replace(b"\n", b"\r"),
    "bom": lambda raw: b"\xef\xbb\xbf" + raw,
    "utf-16 le": lambda raw: raw.decode("utf-8", "replace").encode("utf-16"),
    "utf-16 be": lambda raw: b"\xfe\xff" + raw.decode("utf-8", "replace").encode("utf-16-be"),
    "latin-1": lambda raw: raw + "\nGerät für Übung\n".encode("latin-1"),
    "gzip": gzip.compress,
    "gzip cut short": lambda raw: gzip.compress(raw)[:-30],
    "gzip of two parts": lambda raw: (
        gzip.compress(raw[: len(raw) // 2]) + gzip.compress(raw[len(raw) // 2 :])
    ),
    "gzip and garbage": lambda raw: gzip.compress(raw) + noise(500),
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zip": zipped,
    "long line ahead": lambda raw: LONG + b"\n" + raw,
    "long line halfway": halfway(LONG),
    "long line of blanks": halfway(b" " * 3_000_000 + b"%| iteration"),
    "long line of digits": halfway(b"1" * 3_000_000 + b"%|"),
    "long line of json": halfway(json.dumps({"a": list(range(900_000))}).encode()),
    "deep json": halfway(b'{"a":' + b"[" * 200_000),
    "binary halfway": halfway(noise(200_000)),
    "nuls": lambda raw: raw.replace(b" ", b" \0"),
    "file of nuls behind": lambda raw: raw + b"\0" * 1_000_000,
    "colours in numbers": lambda raw: re.sub(NUMBERED, b"\x1b[1;32m\\1\x1b[0m", raw),
    "window titles": lines(lambda i, line: b"\x1b]0;job %d\x07\x1b[2K" % i + line),
    "broken escapes": lines(lambda i, line: line + b"\x1b[\x1b]"),
    "srun labels": lines(lambda i, line: b" 7: " + line),
    "torchrun labels": lines(lambda i, line: b"[default7]:" + line),
    "pod labels": lines(lambda i, line: b"[pod/run-0-x2b4/pytorch] " + line),
    "cri stamps": lines(lambda i, line: b"%sZ stdout F " % stamp_of(line) + line),
    "syslog stamps": lines(lambda i, line: b"Nov 25 22:52:13 host-1 job[77]: " + line),
    "eight ranks": lines(
        lambda i, line: b"\n".join(b"[rank%d]: " % rank + line for rank in range(8))
    ),
    "out of order": shuffled,
    "torn lines": torn,
    "lines missing": lambda raw: b"\n".join(
        row for i, row in enumerate(raw.split(b"\n")) if i % 11 or i < 1200
    ),
    "no last line": lambda raw: raw[: raw.rstrip().rfind(b"\n") + 40],
    "two runs": lambda raw: raw + b"\n" + raw,
    "restarted": restarted,
    "clock an hour on": hours(1),
    "clock an hour back": hours(-1),
    "clock twelve hours on": hours(12, 0.6),
    "clock of 1970": lambda raw: re.sub(rb"20\d\d-", b"1970-", raw, count=200),
    "loss of nan": lambda raw: re.sub(rb"(loss\w*:? *)-?\d+\.\d+(?:E[+-]\d+)?", rb"\1nan", raw),
    "loss of inf": lambda raw: re.sub(rb"(loss\w*:? *)-?\d+\.\d+(?:E[+-]\d+)?", rb"\1-inf", raw),
    "times of nan": lambda raw: re.sub(
        rb"(per iteration \(ms\): )\d+\.\d+", nan_at(9), re.sub(rb"(tps: )[\d,]+", nan_at(9), raw)
    ),
    "endless numbers": halfway(
        b" iteration 99999999999999999999999/ 9 | elapsed time per iteration (ms): 1e999 |\n"
        b" iteration -5/ 9 | elapsed time per iteration (ms): -1.0 |\n"
        b"step: 9999999999999999999999 loss: 1 memory: 9e99GiB(1%) tps: 0 tflops: 0.0"
    ),
    "mixed units": lambda raw: re.sub(
        rb"per iteration \(ms\): (\d+\.\d+)", every_second_in_seconds(), raw
    ),
    "markup": halfway(
        b"model_name: [/red]<script>alert(1)</script>\nrelease: {0.__class__}\n"
        b"--model-name '<img src=x onerror=alert(1)>'\n: !!python/object/apply:os.system ['ls']"
    ),
    "secrets": lambda raw: (
        f"HF_TOKEN={SECRET}\nrelease: {SECRET}\nmodel_name: {SECRET}\n"
        f"/srv/alice/{SECRET}\n".encode()
        + raw
    ),
    "empty": lambda raw: b"",
    "blank": lambda raw: b"\n" * 10_000,
    "a binary": lambda raw: b"\x7fELF" + noise(300_000),
    "html": lambda raw: b"<html><body>404 not found</body></html>",
}


def nan_at(every: int):
    count = iter(range(1 << 30))
    return lambda m: m[1] + b"nan" if next(count) % every == 4 else m[0]


def every_second_in_seconds():
    count = iter(range(1 << 30))
    return lambda m: b"per iteration (s): %.4f" % (float(m[1]) / 1e3) if next(count) % 2 else m[0]


def read(folder: Path, raw: bytes) -> dict:
    path = folder / "job.out"
    path.write_bytes(raw)
    return sc.learn(path)[0]


def off(wanted: dict, got: dict) -> list[str]:
    """The figures of a log that its variant does not have."""
    return [
        f"{name} {got[name]} not {value}"
        for name in FIGURES
        if (value := wanted[name]) is not None
        and not (got[name] is not None and abs(got[name] - value) <= NEAR * abs(value))
    ]


# of a file of a few megabytes: a pattern that goes back over a long line takes hours, a slow
# machine a few seconds
SLOW_S = 60.0


def tried(raw: bytes, folder: Path, names=VARIANTS) -> dict:
    """{variant: what is wrong with how it is read, "" where nothing is, "refused: ..."}."""
    wanted = read(folder, raw)
    out = {}
    for name in names:
        began = time.process_time()
        try:
            out[name] = ", ".join(off(wanted, read(folder, VARIANTS[name](raw))))
        except DesignError as error:
            told = str(error)
            out[name] = ("" if name in REFUSED and "\n" not in told else "refused: ") + told[:90]
        except Exception as error:
            out[name] = f"{type(error).__name__}: {error}"[:200]
        spent = time.process_time() - began
        if spent > SLOW_S:
            out[name] += f" ({spent:.0f} s of processor time)"
    return out


def main(paths: list[str]) -> None:
    for path in map(Path, paths):
        with tempfile.TemporaryDirectory() as folder:
            result = tried(path.read_bytes(), Path(folder))
        wrong = {n: told for n, told in result.items() if told and n not in REFUSED}
        print(f"{path.name}: {len(result) - len(wrong)} of {len(result)} variants", flush=True)
        for name, told in wrong.items():
            print(f"    {name}: {told}")


if __name__ == "__main__":
    main(sys.argv[1:])

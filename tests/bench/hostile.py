"""Hostile files, arguments and designs against the whole command line, in one process:

    python tests/bench/hostile.py [--files 20000] [--designs 20000] [--through 300] [--seed 1]
                            [--first 0]

Cases are numbered: the same seed and number make the same case on every machine, so that one that
fails can be looked at alone (`--only 1234`). A failure is an exception that leaves `main`, an exit
code other than 0, 2, 3, 4, a refusal that is not one line beginning `scantling: `, a number that is
not finite in JSON, CSV, HTML or words, more than 20 s of processor time, or more than 2 GB.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import io
import json
import math
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

import numpy as np
import yaml
from mutated import case
from random_designs import drawn
from scantling.advise.design_json import as_dict
from scantling.base.console import print_json
from scantling.base.errors import DesignError
from scantling.base.files import MAX_BYTES
from scantling.catalogue import HERE as CATALOGUE, accelerators, fabrics
from scantling.cli.app import main as scantling
from scantling.design.design import Design, json_schema
from scantling.design.plausible import usual
from scantling.design.replaced_rows import ACCELERATOR_OVERRIDES, FABRIC_OVERRIDES, REPLACES
from scantling.verdict.assess import assess
from scantling.verdict.verdicts import EXIT
from scantling_kits import FRAMEWORKS, ON

LIMIT_S, LIMIT_KB = 20, 2 << 20  # of a refusal
HANG_S = 120  # of any command: `fixes` assesses a large design again for every change that it tries
GALLERY = sorted((Path(__file__).parents[2] / "gallery" / "designs").glob("*.yaml"))
# as Python and C print them; "NaN on one rank" is a sentence about losses, Infinity Fabric a link
NOT_FINITE = re.compile(r"(?<![\w.\-/'\"“])[-+]?(?:nan|inf|Infinity)(?![\w\-/'\"”]| Fabric)")
_DATA = re.compile(r'<script[^>]*type="application/[^"]*json"[^>]*>(.*?)</script>', re.S)
UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
WORDS = [
    *("<script>alert(1)</script>", "$(touch CANARY)", "`touch CANARY`", "{{ 7*7 }}", "{% x %}"),
    *(
        "../../etc/passwd",
        "/dev/zero",
        "/etc/passwd",
        "\u202egnp.exe",
        "\x1b[31m",
        "a\x00b",
        "",
        " ",
    ),
    *("a" * 201, "a" * 100_000, "null", "true", "1e3", "1:30", "=1+1", "--help", "-", "%s%n{0}"),
    *("nosuch-id", "h100-sxm", "llama-3.1-8b", "none", "zero3", "bf16", "7,5", "1,024", "40%"),
    *("50M", "1.024.000", "\uff18", "\u0663", "1_000", "0x10", "9" * 500, "1e999", "-8", "nan"),
]
NUMBERS = [
    *(0, -1, 1, 2, 3, 7, -0.0, 0.5, 1.5, 1e-320, 5e-324, 1e-300, 1e-12, 1e308, -1e308, 2**31),
    *(2**53, 2**63, 10**17, 10**30, 10**309, 10**400, math.nan, math.inf, -math.inf, 999_999_937),
]
OTHERS = [None, True, False, [], {}, [1], [None], {"a": 1}, [[[[[1]]]]], {"like": "x"}]
# every command with its arguments; {d} is the design, {o} a folder to write to
COMMANDS = [
    line.split()
    for line in """
    design {d} --json
    design {d}
    goodput {d} --json
    goodput {d}
    blueprint {d} --json
    blueprint {d}
    search {d} --json
    search {d}
    sensitivity {d} --json
    front {d} --json
    diagnose {d} --json
    diagnose {d}
    scaling {d} --json
    scaling {d}
    candidates {d} -o {o}/plans.csv
    sweep {d} cluster.devices=64,128 --json
    answer {d} fewest-devices --json
    answer {d} longest-sequence --json
    answer {d} earliest-finish --json
    answer {d} largest-model --json
    answer {d} biggest-micro-batch --json
    answer {d} compute-budget --json
    answer {d} cheaper --json
    """.strip().splitlines()
] + [["launch", "{d}", "--to", to, "--on", on, "-o", "{o}/kit"] for to in FRAMEWORKS for on in ON]
# places of an argument that a person types
ARGUMENTS = [
    ["init", "--text", "{x}", "-o", "-"],
    ["init", "--like", "{x}", "-o", "-"],
    ["design", "{x}", "--json"],
    ["sweep", "{d}", "cluster.devices={x}", "--json"],
    ["sweep", "{d}", "{x}=1,2", "--json"],
    ["sensitivity", "{d}", "--key", "{x}", "--json"],
    ["front", "{d}", "--devices", "{x}", "--json"],
    ["search", "{d}", "--over", "job.global_batch={x}", "--json", "--no-progress"],
    ["search", "{d}", "--top", "{x}", "--json"],
    ["answer", "{d}", "{x}", "--json"],
    ["launch", "{d}", "--to", "{x}", "-o", "{o}/kit"],
    ["launch", "{d}", "--to", "fsdp", "--on", "{x}", "-o", "{o}/kit"],
    ["blueprint", "{d}", "--part", "{x}", "--json"],
    ["scaling", "{d}", "--flops", "{x}", "--json"],
    ["catalogue", "{x}", "--json"],
    ["params", "{x}", "--json"],
    ["predict", "{x}", "-o", "{o}/out.csv"],
    ["validate", "{x}"],
    ["candidates", "{d}", "--measured", "{x}"],
    ["{x}"],
]
BRIEFS = [
    "175B MoE, 96 layers, 1024x A100 80GB, 200Gb/s IB, 1T tokens in 30 days",
    "{n}B on {n} H100, {n} tokens, {n} layers",
    "train a {n}-parameter model on {n} GPUs of {n} GB for ${n} in {n} days, MFU above {n}%",
]


class Hang(BaseException):
    """The call used more processor time than it may."""


class Bench:
    """Runs one call after another and keeps what went wrong."""

    def __init__(self, out: Path):
        self.out, self.codes, self.bad, self.calls = out, Counter(), [], 0
        self.design = out / "design.yaml"

        def late(*_):
            raise Hang

        signal.signal(signal.SIGPROF, late)

    def call(self, case: str, argv: list[str], run=scantling) -> tuple[int | None, str]:
        """One command; what it did wrong is printed and kept under the name of the case."""
        out, err, code, fault = io.StringIO(), io.StringIO(), None, ""
        kit = self.out / "kit"
        shutil.rmtree(kit, ignore_errors=True)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        try:
            begin = time.process_time()
            signal.setitimer(signal.ITIMER_PROF, HANG_S)
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = run(argv)
            if code == 2 and time.process_time() - begin > LIMIT_S:
                fault = f"more than {LIMIT_S} s for a refusal"
        except Hang as e:
            fault = f"more than {HANG_S} s, {_where(e)}"
        except BaseException as e:
            fault = f"{type(e).__name__}: {str(e)[:120]}, {_where(e)}"
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        self.calls += 1
        self.codes[code] += 1
        said = re.sub(r"\r\d+ of \d+\n?", "", err.getvalue())
        read = "--json" in argv and "--help" not in argv
        fault = fault or self._fault(code, out.getvalue(), said, read, " ".join(argv))
        if not fault and grown > LIMIT_KB:
            fault = f"{grown >> 10} MB"
        if not fault and kit.is_dir():
            fault = next(filter(None, map(_file_fault, kit.rglob("*"))), "")
        if fault:
            self.bad.append((case, argv, fault))
            print(f"\n{case}: {' '.join(argv)[:120]}: {fault}", flush=True)
        return code, out.getvalue()

    def _fault(self, code, text: str, said: str, as_json: bool, typed: str) -> str:
        if code not in (0, 2, 3, 4):
            return f"exit {code}"
        batch = re.fullmatch(r"[\w-]+: wrong: .*\n", said)  # a batch names the design of the line
        one = said.startswith("scantling: ") or batch
        if code == 2 and not (one and said.count("\n") == 1):
            return f"refused in other words: {said[:200]!r}"
        if found := UNPRINTABLE.search(text + said):
            return f"prints U+{ord(found.group()):04X}"
        if as_json and text and code != 2:
            return _json_fault(text)
        # what `init` was told stands in its file, as a comment
        text = re.sub(r"^#.*$", "", text, flags=re.M)
        for found in NOT_FINITE.finditer(text):
            if text[found.start() : found.end() + 3] not in typed:  # else quoted back
                return f"says {text[max(0, found.start() - 40) : found.end() + 9]!r}"
        return ""


def _json_fault(text: str) -> str:
    def constant(name):
        raise ValueError(f"holds {name}")

    try:
        json.loads(text, parse_constant=constant)
    except ValueError as e:
        return f"JSON: {e}"
    return ""


def _file_fault(path: Path) -> str:
    """What is wrong with a file that was written: JSON, CSV and pages hold finite numbers."""
    if path.suffix not in (".json", ".csv", ".html") or not path.is_file():
        return ""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        found = _json_fault(text)
    else:
        words = re.sub(r"<(script|style).*?</\1>", "", text, flags=re.S)
        faults = [*map(_json_fault, _DATA.findall(text))]
        faults += [
            f"says {words[max(0, m.start() - 40) :][:50]!r}" for m in NOT_FINITE.finditer(words)
        ]
        found = next(filter(None, faults), "")
    return f"{path.name}: {found}" if found else ""


def _where(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if "scantling" in f.filename and "hostile" not in f.filename]
    last = (own or frames)[-1]
    return f"{Path(last.filename).name}:{last.lineno} {last.name}"


# ------------------------------------------------------------------ hostile cases
def numbers_of_the_schema() -> dict[tuple[str, ...], tuple[float, float]]:
    """(low, high) of every number of the published schema, by the path of its field."""
    schema, found = json_schema(), {}

    def walk(node, path):
        node = schema["$defs"][node["$ref"].rpartition("/")[2]] if "$ref" in node else node
        if "minimum" in node:
            found[path] = (node["minimum"], node["maximum"])
        for name, below in node.get("properties", {}).items():
            walk(below, (*path, name))
        for below in node.get("anyOf", node.get("oneOf", ())):
            walk(below, path)

    walk(schema, ())
    return found


BOUNDS = numbers_of_the_schema()
# every question of plausible.csv is answered: what is asked about is computed nowhere else
CONFIRMED = [row.field if "." in row.field else f"job.{row.field}" for row in usual()]


def put(data: dict, path: tuple[str, ...], value) -> None:
    for step in path[:-1]:
        if not isinstance(data.get(step), dict):
            like = {"like": data[step]} if isinstance(data.get(step), str) else {}
            data[step] = like
        data = data[step]
    data[path[-1]] = value


def spelt(data) -> bytes:
    return yaml.safe_dump(data, sort_keys=False, width=10**9).encode("utf-8", "surrogatepass")


class Cases:
    """Hostile case number n of a seed."""

    def __init__(self, seed: int, folder: Path):
        self.seed, self.folder = seed, folder
        self.good = [yaml.safe_load(p.read_text()) for p in GALLERY]
        os.mkfifo(folder / "pipe")
        os.symlink("/dev/zero", folder / "device")
        self.small = Path(__file__).parents[2] / "gallery/designs/llama-3.1-8b-8-h100-fsdp.yaml"

    def __call__(self, number: int) -> tuple[str, bytes | None, list[str]]:
        """(its name, the design file, the call)."""
        rng = np.random.default_rng([self.seed, number])
        kinds = (self.text, self.bound, self.field, self.override, self.beside, self.argument)
        kind = kinds[rng.choice(len(kinds), p=[0.15, 0.25, 0.25, 0.1, 0.1, 0.15])]
        content, argv = kind(rng)
        if argv is None:
            command = COMMANDS[rng.integers(len(COMMANDS))] if rng.random() < 0.5 else COMMANDS[0]
            argv = list(command)
        return f"{number} {kind.__name__}", content, argv

    def design(self, rng) -> dict:
        return copy.deepcopy(self.good[rng.integers(len(self.good))])

    def text(self, rng):
        """The bytes of a good file, damaged."""
        raw = bytearray(spelt(self.design(rng)))
        for _ in range(int(rng.integers(1, 6))):
            at, piece = int(rng.integers(len(raw))), self.word(rng).encode("utf-8", "surrogatepass")
            how = rng.integers(5)
            if how == 0:
                raw[at] = int(rng.integers(256))
            elif how == 1:
                del raw[at : at + int(rng.integers(1, 40))]
            elif how == 2:
                raw[at:at] = piece[:2000]
            elif how == 3:
                raw[at:at] = raw[at : at + int(rng.integers(1, 400))] * int(rng.integers(1, 30))
            else:
                raw[at:at] = b"[{:&a*a!!x\n- ? |>%@`'\""[int(rng.integers(20)) :]
            raw = raw or bytearray(b" ")
        return bytes(raw), None

    def bound(self, rng):
        """One to four numbers at a bound, just beyond one, or anywhere between."""
        data, paths = self.design(rng), list(BOUNDS)
        for _ in range(int(rng.integers(1, 5))):
            path = paths[rng.integers(len(paths))]
            if path[0] == "plan" and rng.random() < 0.7:
                continue  # most pins end in a refusal: others first
            low, high = BOUNDS[path]
            between = math.exp(rng.uniform(math.log(max(low, 1e-6)), math.log(high)))
            between = round(between) if isinstance(low, int) else between
            value = [low, high, between, between, low / 2 - 1 if low else -1, high * 2]
            put(data, path, value[rng.choice(6, p=[0.3, 0.3, 0.17, 0.17, 0.03, 0.03])])
        return spelt(data | {"confirm": CONFIRMED}), None

    def field(self, rng):
        """A field of any section holds what it never should."""
        data = self.design(rng)
        paths = [*BOUNDS, ("name",), ("model",), ("cluster",), ("job",), ("plan",), ("stack",)]
        paths += [("job", "phases"), ("cluster", "accelerator"), ("cluster", "scale_out")]
        paths += [("unknown",), ("confirm",), ("model", "hf_config"), ("calibration",)]
        for _ in range(int(rng.integers(1, 3))):
            put(data, paths[rng.integers(len(paths))], self.value(rng))
        with contextlib.suppress(yaml.YAMLError, UnicodeError):
            return spelt(data), None
        return b"", None

    def override(self, rng):
        """Figures of a chip or a network, a million times larger or smaller than their rows."""
        data = self.design(rng)
        chip = rng.random() < 0.6
        rows, names = (
            (accelerators(), ACCELERATOR_OVERRIDES) if chip else (fabrics(), FABRIC_OVERRIDES)
        )
        like = str(rng.choice(list(rows)))
        spec = {"like": like}
        for name in rng.choice(list(names), int(rng.integers(1, 4)), replace=False):
            field, factor = names[str(name)]
            usual = getattr(rows[like], field) / factor
            usual = usual if usual > 0 else 1.0
            times = rng.choice([1 / REPLACES, REPLACES, 10.0 ** rng.uniform(-7, 7)])
            spec[str(name)] = float(usual * times * (1 + 1e-9 * (times < 1) - 1e-9 * (times > 1)))
        if rng.random() < 0.2:
            spec["name"] = self.word(rng)
        put(data, ("cluster", "accelerator" if chip else "scale_out"), spec)
        return spelt(data), None

    def beside(self, rng):
        """A model config or a calibration beside the design, damaged."""
        config = dict(
            architectures=["LlamaForCausalLM"],
            model_type=str(rng.choice(["llama", "mixtral", "deepseek_v3", "qwen3_moe", "gemma3"])),
            hidden_size=4096,
            intermediate_size=14336,
            num_hidden_layers=32,
            num_attention_heads=32,
            num_key_value_heads=8,
            vocab_size=128256,
            num_local_experts=8,
            num_experts_per_tok=2,
        )
        measured = dict(
            scantling_calibration=2,
            made="2026-01-01",
            device=dict(accelerator="h100-sxm", name="x"),
            constants=dict(gemm=0.7),
        )
        which = rng.random() < 0.7
        held = config if which else measured
        for _ in range(int(rng.integers(1, 4))):
            key = str(rng.choice(list(held)))
            held[key] = self.value(rng)
            if isinstance(held[key], dict) and rng.random() < 0.5:
                held[key] = {"gemm": self.value(rng)}
        name = str(rng.choice(["beside", "beside", "beside", "pipe", "device", "nosuch", "."]))
        dump = json.dumps(held) if which else spelt(held).decode("utf-8", "surrogatepass")
        (self.folder / "beside").write_text(dump, encoding="utf-8", errors="surrogatepass")
        data = dict(scantling=1, model="llama-3.1-8b", job={"tokens": 1e9})
        data["cluster"] = dict(accelerator="h100-sxm", devices=64)
        data |= {"model": {"hf_config": name}} if which else {"calibration": name}
        return spelt(data), ["params", str(self.folder / name), "--json"] if (
            which and rng.random() < 0.3
        ) else None

    def argument(self, rng):
        """A call that holds a hostile argument."""
        brief = str(rng.choice(BRIEFS))
        word = re.sub(r"\{n\}", lambda _: self.word(rng)[:400], brief)
        word = word if rng.random() < 0.3 else self.word(rng)
        # no call hands a NUL over, and the shell's limit is 128 kB
        word = word.replace("\0", "")[:100_000].replace("{", "{{").replace("}", "}}")
        call = ARGUMENTS[rng.integers(len(ARGUMENTS))]
        return None, [part.replace("{x}", word) for part in call]

    def word(self, rng) -> str:
        some = (*WORDS, *map(str, NUMBERS), str(self.folder / "pipe"), str(self.folder / "device"))
        return some[rng.integers(len(some))]

    def value(self, rng):
        some = (NUMBERS, NUMBERS, WORDS, OTHERS)[rng.integers(4)]
        return some[rng.integers(len(some))]


def hostile(bench: Bench, seed: int, numbers, told=lambda done, bench: None) -> None:
    """Runs hostile cases."""
    cases = Cases(seed, bench.out)
    for number in numbers:
        name, content, argv = cases(number)
        where = cases.small
        if content is not None:
            bench.design.write_bytes(content[: MAX_BYTES + 1])
            where = bench.design
        bench.call(name, [part.format(d=where, o=bench.out) for part in argv])
        told(number, bench)


def mutated(bench: Bench, seed: int, numbers, told=lambda done, bench: None) -> None:
    """Runs real files whose structure was changed."""
    rows = (CATALOGUE / "published_runs.csv").read_text(encoding="utf-8").splitlines()[:4]
    table = bench.out / "table.csv"
    table.write_text("\n".join(rows) + "\n", encoding="utf-8")
    for number in numbers:
        name, content, argv = case(seed, number)
        bench.design.write_bytes(content)
        bench.call(name, [p.format(f=bench.design, t=table, o=bench.out) for p in argv])
        told(number, bench)


def valid(bench: Bench, numbers, through: int, told=lambda done, bench: None) -> None:
    """Runs designs drawn at random: each is assessed and written as JSON, `through` of them by
    every command."""
    every = max(1, len(numbers) // max(through, 1))
    for i, number in enumerate(numbers):
        data = drawn(number)
        try:
            Design.from_data(data)
        except DesignError:
            continue
        bench.design.write_bytes(spelt(data))
        commands = COMMANDS if through and i % every == 0 else []
        bench.call(f"assess {number}", [str(bench.design), "--json"], assessed)
        for argv in commands:
            bench.call(f"design {number}", [p.format(d=bench.design, o=bench.out) for p in argv])
        if commands is COMMANDS:
            pages(bench, number)
        told(number, bench)


def assessed(argv: list[str]) -> int:
    """What is said of the design without advice, which takes more searches."""
    try:
        a = assess(Design.read(argv[0]))
    except DesignError as e:  # a law of plans, which the schema does not know
        print(f"scantling: {e}", file=sys.stderr)
        return 2
    print_json(as_dict(a, advice=False))
    return EXIT[a.verdict]


def pages(bench: Bench, number: int) -> None:
    """The report of the design on the bench; its page, notebook and record hold finite numbers."""
    out = bench.out / "reports"
    bench.call(f"report {number}", ["report", str(bench.design), "-o", str(out), "--workers", "1"])
    for path in out.glob("*"):
        if fault := _file_fault(path):
            bench.bad.append((f"report {number}", [path.name], fault))
            print(f"\nreport {number}: {fault}", flush=True)
    shutil.rmtree(out, ignore_errors=True)


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--designs", type=int, default=20_000)
    parser.add_argument("--through", type=int, default=300, help="designs through every command")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="go on from this number of each")
    parser.add_argument("--only", type=int, help="one hostile case")
    parser.add_argument("--mutated", action="store_true", help="real files restructured, alone")
    args = parser.parse_args(argv)
    print(f"seed {args.seed}", flush=True)
    # what asks for more is a MemoryError of its case, and not the end of all
    resource.setrlimit(resource.RLIMIT_DATA, (3 * LIMIT_KB << 10,) * 2)
    with tempfile.TemporaryDirectory(prefix="scantling-hostile-") as folder:
        bench = Bench(Path(folder))

        def told(number, bench):
            if number % 100 == 0:
                said = f"\r{number:,}: {bench.calls:,} calls, {len(bench.bad)} failures "
                print(said, end="", file=sys.stderr, flush=True)

        one = args.only is not None
        numbers = [args.only] if one else range(args.first, args.files)
        here = Path.cwd()
        os.chdir(folder)
        try:
            if not args.mutated:
                hostile(bench, args.seed, numbers, told)
            if args.mutated or not one:
                mutated(bench, args.seed, numbers, told)
            if not one and not args.mutated:
                start = 1_000_000 * args.seed
                designs = range(start + args.first, start + args.designs)
                valid(bench, designs, args.through, told)
        finally:
            os.chdir(here)
        if list(Path(folder).rglob("CANARY*")):
            bench.bad.append(("canary", [], "something was executed"))
            print("\na file named CANARY: something was executed")
    print(f"\n{bench.calls:,} calls, seed {args.seed}; exit codes {dict(bench.codes)}")
    print(f"{len(bench.bad)} failures")
    return bool(bench.bad)


if __name__ == "__main__":
    sys.exit(main())

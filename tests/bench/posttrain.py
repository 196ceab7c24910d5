"""How right post-training is: published rows predicted, families left out of the fit.

`python tests/bench/posttrain.py [FOLDER]` reads `sft.csv` and `rl.csv` of a folder, those that the
package ships where none is named, and prints the goals and their figures. Every family of sources
has weight one: its figure is worked out with constants that were fitted without it. `--fit` prints
what all families together give. A row counts where its trust is not low and its `whole` is yes.
"""

import argparse
import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scantling_posttrain.constants import HERE, Constants, constants, priors, ranges
from scantling_posttrain.policy_tables import read_policy_rows
from scantling_posttrain.predict import policy_answers, tuning_answers
from scantling_posttrain.tuning_cases import read_rows

SPEED = (  # constants that a fit moves; the others stand by their sources
    "adapter_passes",
    "adapter_fused",
    "peft_layer_s",
    "peft_module_s",
    "engine_layer_s",
    "unpack_nf4",
    "unpack_gptq",
    "file_bytes_per_s",
    "policy_logit_bytes",
    "experts_layer_s",
    "any_model",
)
PEAKS = ("eager_logit_bytes", "reserved_share", "context_bytes")
STEPS = (
    "decode_hbm",
    "decode_kv",
    "decode_flops",
    "engine_step_s",
    "engine_row_s",
    "decode_reduce_s",
    "decode_reduce_out_s",
    "experts_step_s",
    "experts_layer_s",
    "length_spread",
    "passes_forward",
    "step_other_share",
    "step_other_s",
    "sync_ipc_bytes_per_s",
)
README = Path(__file__).parents[2] / "README.md"
SPREAD = 0.5  # standard deviation of the logarithm by which a fit may leave a constant's prior


class Table(NamedTuple):
    """Logarithms of predicted over measured, as a function of the constants, and the constants that
    move them."""

    raw: list[dict[str, str]]  # rows that have a case
    family: np.ndarray
    errors: Callable[[Constants], np.ndarray]
    names: tuple[str, ...]


def number(cell: str) -> float:
    """A cell as a number; nan where it is blank."""
    return float(cell) if cell else float("nan")


def read(path: Path) -> list[dict[str, str]]:
    """The rows of a table."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def counts(row: Mapping[str, str]) -> bool:
    """Whether a row counts: its plan and lengths are known, its source is trusted."""
    return row["whole"] == "yes" and row["trust"] != "low"


def measured(rows: Sequence[Mapping[str, str]], column: str) -> np.ndarray:
    """A measured column of the rows that count, nan elsewhere."""
    return np.array([number(row[column]) if counts(row) else np.nan for row in rows])


def by_family(family: np.ndarray, values: np.ndarray) -> dict[str, np.ndarray]:
    """The values of each family, those that are known."""
    known = ~np.isnan(values)
    return {str(name): values[known & (family == name)] for name in np.unique(family[known])}


def loss(k: Constants, table: Table, without: str) -> float:
    """Mean over a table's families of their mean absolute error."""
    found = by_family(table.family, table.errors(k))
    return float(np.mean([np.mean(np.abs(v)) for name, v in found.items() if name != without]))


def moved(k: Constants) -> float:
    """What the constants cost by which they left their priors."""
    return sum(
        0.004 * (np.log(vars(k)[name] / value) / SPREAD) ** 2
        for name, value in vars(priors()).items()
        if value > 0
    )


def fit(tables: Sequence[Table], without: str = "") -> Constants:
    """Constants by coordinates: each in turn by steps within its range, the better kept. All tables
    at once, since one constant may stand in several; a family is left out of all of them."""
    k = priors()
    parts = [loss(k, table, without) for table in tables]
    best = sum(parts)
    names = dict.fromkeys(name for table in tables for name in table.names)
    for step in (1.5, 1.2, 1.07, 1.02):
        for name in names:
            for factor in (step, 1 / step):
                while True:
                    limit = ranges()[name]
                    value = min(max(vars(k)[name] * factor, limit.low), limit.high)
                    trial = replace(k, **{name: value})
                    tried = [
                        loss(trial, table, without) if name in table.names else part
                        for table, part in zip(tables, parts)
                    ]
                    now = sum(tried) + moved(trial)
                    if now >= best - 1e-5:
                        break
                    k, best, parts = trial, now, tried
    return k


def quantile(found: Mapping[str, np.ndarray], share: float) -> float:
    """A quantile of values in which every family has weight one."""
    values = np.concatenate(list(found.values()))
    weights = np.concatenate([np.full(len(v), 1 / len(v)) for v in found.values()])
    order = np.argsort(values)
    total = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(total, share * total[-1])])


def error_of(found: Mapping[str, np.ndarray], share: float) -> float:
    """Standard error of a quantile: of 1,000 draws of as many families, with replacement."""
    draw, values = np.random.default_rng(0), list(found.values())
    picks = draw.integers(0, len(values), (1000, len(values)))
    drawn = [quantile({str(i): values[j] for i, j in enumerate(pick)}, share) for pick in picks]
    return float(np.std(drawn))


def inside(found: Mapping[str, np.ndarray], low: float, high: float) -> float:
    """Share of the rows whose measured value lies in the interval, families with weight one."""
    share = [np.mean((-v >= np.log(low)) & (-v <= np.log(high))) for v in found.values()]
    return float(np.mean(share))


def report(label: str, found: Mapping[str, np.ndarray], low: float, high: float) -> None:
    """Median and 90th percentile of the errors, and the interval, families with weight one."""
    sizes = {name: np.abs(np.expm1(v)) for name, v in found.items()}
    print(
        f"{label}: median {quantile(sizes, 0.5):.1%} (+-{error_of(sizes, 0.5):.1%}), 90th "
        f"percentile {quantile(sizes, 0.9):.1%} (+-{error_of(sizes, 0.9):.1%}), "
        f"{inside(found, low, high):.0%} inside; {len(found)} families, "
        f"{sum(map(len, found.values()))} rows; 10 to 90 % of measured / predicted "
        f"{np.exp(-quantile(found, 0.9)):.2f} to {np.exp(-quantile(found, 0.1)):.2f}"
    )
    for name, v in found.items():
        sizes_of = np.abs(np.expm1(v))
        print(
            f"    {name}: {len(v)} rows, {np.median(sizes_of):.1%}, "
            f"bias {np.median(np.expm1(v)):+.1%}"
        )


def cell_of(found: Mapping[str, np.ndarray], low: float, high: float) -> str:
    """A cell of the read-me's table: errors of families that were left out."""
    sizes = {name: np.abs(np.expm1(v)) for name, v in found.items()}
    shares = (quantile(sizes, 0.5), quantile(sizes, 0.9), inside(found, low, high))
    median, most, kept = (100 * share for share in shares)
    return f"{median:.1f} %, {most:.0f} %, {kept:.0f} %"


BEGIN, END = "<!-- post-training: begin -->", "<!-- post-training: end -->"
ROW = "median error, 90th percentile, inside the 80 % interval"


def write_table(path: Path, cells: Mapping[str, str]) -> None:
    """Put the table, a column a kind of figure, between its marks in the read-me."""
    text = path.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    lines = (
        f"| post-training, families left out | {' | '.join(cells)} |",
        f"| ---{' | ---:' * len(cells)} |",
        f"| {ROW} | {' | '.join(cells.values())} |",
    )
    table = "\n".join((BEGIN, *lines, END))
    path.write_text(f"{before}{table}{after}", encoding="utf-8")


def left_out(tables: Sequence[Table]) -> list[dict[str, np.ndarray]]:
    """Of each table, errors of each family under constants fitted without it."""
    names = dict.fromkeys(str(name) for table in tables for name in np.unique(table.family))
    fits = {name: fit(tables, name) for name in names if any(name in known(t) for t in tables)}
    return [
        {name: by_family(t.family, t.errors(fits[name]))[name] for name in known(t)} for t in tables
    ]


def known(table: Table) -> dict[str, np.ndarray]:
    """Errors of the families that a table has measured rows of."""
    return by_family(table.family, table.errors(constants()))


def tuning_tables(path: Path) -> tuple[Table, Table, Callable[[], None]]:
    """Speed and peaks of the fine-tuning rows, and what prints whether they fit."""
    raw = read(path)
    rows = read_rows(raw)
    ready = [row for row, good in zip(raw, rows.ready) if good]
    family = np.array([row["family"] for row in ready])
    speed, peak = measured(ready, "tokens_per_s_per_device"), measured(ready, "peak_gb") * 1e9

    def speed_errors(k: Constants) -> np.ndarray:
        answers = tuning_answers(rows, k)
        assert answers is not None
        return np.log(answers.tokens_per_s_per_device / speed)

    def peak_errors(k: Constants) -> np.ndarray:
        answers = tuning_answers(rows, k)
        assert answers is not None
        return np.log(answers.peak_bytes / peak)

    def fits() -> None:
        answers = tuning_answers(rows, constants())
        assert answers is not None
        outcome = np.array([outcome_of(row) for row in ready])
        called = answers.peak_bytes <= answers.capacity_bytes
        known = ~np.isnan(outcome)
        right = by_family(family, np.where(known, called == (outcome > 0.5), np.nan))
        over = outcome == 0
        print(
            f"fits or not: {np.mean([v.mean() for v in right.values()]):.1%} right, families with "
            f"weight one; {known.sum()} rows, {over.sum()} printed out of memory, "
            f"{(~called)[over].mean():.0%} of them called"
        )

    tables = (Table(ready, family, speed_errors, SPEED), Table(ready, family, peak_errors, PEAKS))
    return *tables, fits


def outcome_of(row: Mapping[str, str]) -> float:
    """1 where a row ran with a peak, 0 where it is printed that it did not fit."""
    if row["oom_printed"] == "printed":
        return 0.0
    return 1.0 if row["peak_gb"] and row["trust"] != "low" else float("nan")


def policy_table(path: Path) -> tuple[Table, Callable[[Constants], None]]:
    """Steps of the policy rows, and what prints phases and pairs."""
    raw = read(path)
    rows = read_policy_rows(raw, constants())
    ready = [row for row, good in zip(raw, rows.ready) if good]
    family = np.array([row["family"] for row in ready])
    step = measured(ready, "step_s")

    def errors(k: Constants) -> np.ndarray:
        answers = policy_answers(rows, k)
        assert answers is not None
        return np.log(answers.step_s / step)

    def more(k: Constants) -> None:
        answers = policy_answers(rows, k)
        assert answers is not None
        shares: dict[str, list[float]] = {}
        for i, row in enumerate(ready):
            if not (row["step_s"] and row["trust"] != "low" and "sync" == row["sync_or_async"]):
                continue
            printed = [
                (number(row[c]), v[i])
                for c, v in (
                    ("rollout_s", answers.rollout_s),
                    ("train_s", answers.train_s),
                    ("logprob_s", answers.logprob_s),
                )
                if row[c]
            ]
            if not counts(row) or len(printed) < 2:
                continue
            gaps = [abs(a / number(row["step_s"]) - b / answers.step_s[i]) for a, b in printed]
            shares.setdefault(row["family"], []).append(float(np.mean(gaps)))
        for name, gaps in shares.items():
            print(
                f"phase shares, {name}: {np.median(gaps):.1%} off in the median of {len(gaps)} "
                f"rows, {np.mean(np.array(gaps) <= 0.07):.0%} within 7 points"
            )
        right = pairs_right(ready, answers.tokens_per_s_per_device)
        print(f"split against colocated: {np.mean(right):.0%} of {len(right)} pairs right")

    return Table(ready, family, errors, STEPS), more


def pairs_right(rows: Sequence[Mapping[str, str]], tokens: np.ndarray) -> list[bool]:
    """Whether the better of two rows that differ in split or colocated is named, by tokens/s a
    device."""
    right = []
    for i, a in enumerate(rows):
        for j, b in enumerate(rows):
            same = all(
                a[c] == b[c]
                for c in (
                    "source",
                    "model",
                    "accelerator",
                    "precision_train",
                    "max_total_tokens",
                    "max_response_tokens",
                    "algorithm",
                )
            )
            if not same or a["colocated"] != "yes" or b["colocated"] != "no":
                continue
            if not (a["tokens_per_s_per_device"] and b["tokens_per_s_per_device"]):
                continue
            if (
                a["samples_per_prompt"] != b["samples_per_prompt"]
                or a["prompts_per_step"] != b["prompts_per_step"]
            ):
                continue
            truth = number(a["tokens_per_s_per_device"]) > number(b["tokens_per_s_per_device"])
            right.append(bool((tokens[i] > tokens[j]) == truth))
    return right


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=HERE / "published")
    parser.add_argument("--fit", action="store_true", help="print what all families together give")
    parser.add_argument("--readme", action="store_true", help="write the table of the read-me too")
    parser.add_argument("--quick", action="store_true", help="leave no family out")
    options = parser.parse_args(arguments)
    speed, peak, fits = tuning_tables(options.folder / "sft.csv")
    steps, more = policy_table(options.folder / "rl.csv")
    k = constants()
    cells: dict[str, str] = {}
    tables = {"fine-tuning speed": speed, "peaks": peak, "policy steps": steps}
    insides = {
        "fine-tuning speed": (k.low_speed, k.high_speed),
        "peaks": (k.low_peak, k.high_peak),
        "policy steps": (k.low_policy, k.high_policy),
    }
    if options.fit:
        k = fit(list(tables.values()))
        for label, table in tables.items():
            print(label, {name: float(f"{vars(k)[name]:.3g}") for name in table.names})
        more(k)
    without = [] if options.quick else left_out(list(tables.values()))
    for i, (label, table) in enumerate(tables.items()):
        report(f"{label}, as shipped", known(table), *insides[label])
        if without:
            report(f"{label}, families left out", without[i], *insides[label])
            cells[f"{label}, {len(without[i])} families"] = cell_of(without[i], *insides[label])
    fits()
    more(constants())
    if options.readme and cells:
        write_table(README, cells)


if __name__ == "__main__":
    main()

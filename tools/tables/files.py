"""People's own files: reading, probabilities, few labels."""

from __future__ import annotations

import statistics
from typing import Any

from everynode.experiments.statistics import compare_paired
from tables.common import between, gain_between, percent, result


def reading_table() -> str:
    lines = [
        "| | files, MB | seconds of one core | by the clock | peak memory, GB |",
        "|---|---|---|---|---|",
    ]
    found = result("read-million")
    for kind, r in found["rows"].items():
        for step, what in (
            ("read", "read and sum up"),
            ("check", "`everynode.datasets.check`"),
            ("structure", "features from the structure"),
        ):
            if f"{step}_seconds" not in r:
                continue
            size = f"{r['file_mb']:.0f}" if step == "read" else ""
            times = f"{r[f'{step}_cpu_seconds']:.0f} | {r[f'{step}_seconds']:.0f}"
            lines.append(f"| {kind}: {what} | {size} | {times} | {r[f'{step}_peak_gb']:.1f} |")
    load = f"the machine had {found['cores']} cores and a load of {found['load'][0]:.0f}, so the clock counts waiting too"
    lines += ["", f"One thread; {load} (`{found['command']}`)."]
    return "\n".join(lines)


def own_table() -> str:
    """Cora as CSV through fit, beside Cora by its name."""
    found = result("own-cora")
    mean, low, high = (100 * found["fit_minus_train"][key] for key in ("mean", "low", "high"))
    heads = (
        f"test accuracy, {found['seeds']} seeds",
        "`everynode train cora`",
        "two CSV files, `everynode fit`",
        "difference, paired 95%",
    )
    cells = (
        "ENC-GCN",
        percent(found["summary"]["train"]),
        percent(found["summary"]["fit"]),
        between(mean, low, high, 2),
    )
    return "\n".join((f"| {' | '.join(heads)} |", "|---|---|---|---|", f"| {' | '.join(cells)} |"))


def calibration_table() -> str:
    """Temperatures and calibration errors of three ways."""
    lines = [
        "| example | validation nodes | temperature, 0.7.0 | now | calibration error on test, as trained | 0.7.0 | now |",
        "|---|---|---|---|---|---|---|",
    ]
    for r in result("calibration")["rows"]:
        mean = {name: statistics.mean(values) for name, values in r["temperature"].items()}
        ece = {name: statistics.mean(values) for name, values in r["ece"].items()}
        numbers = f"{mean['platt']:.2f} | {mean['now']:.2f} | {ece['none']:.3f} | {ece['platt']:.3f} | {ece['now']:.3f}"
        lines.append(f"| {r['example']} | {r['validation_nodes']} | {numbers} |")
    return "\n".join(lines)


def average_calibration_table() -> str:
    """Calibration errors of the delivered average with 500 labels, graph by graph."""
    lines = [
        "| effort | graph | test nodes | draws | test accuracy | calibration error, as trained | one temperature | delivered | delivered, less its bias | by chance |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in result("calibration-500")["rows"]:
        groups.setdefault((row["effort"], row["graph"]), []).append(row)
    for (effort, graph), rows in sorted(groups.items(), reverse=True):

        def mean(rule: str, key: str, rows: list[dict[str, Any]] = rows) -> float:
            return statistics.mean(row["rules"][rule][key] for row in rows)

        cells = [
            statistics.mean(row["accuracy"] for row in rows),
            mean("as trained", "ece"),
            mean("one temperature", "ece"),
            *(mean("delivered", key) for key in ("ece", "debiased", "by_chance")),
        ]
        shown = " | ".join(f"{100 * value:.1f}%" for value in cells)
        lines.append(f"| {effort} | {graph} | {rows[0]['test_nodes']:,} | {len(rows)} | {shown} |")
    return "\n".join(lines)


def page_network_table() -> str:
    """What the default gains over 0.18.0 on a page network, and how far it depends on the seed."""
    found = result("page-network")
    lines = [
        "| | labels | seeds | 0.18.0: mean, range, standard deviation | now | gain, paired 95% interval | CPU seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    words = {"gain": "labels drawn for each seed", "seeds": "the same labels for each seed"}
    for study, versions in found["rows"].items():
        right = {
            version: [100 * row["delivered"] for row in rows] for version, rows in versions.items()
        }
        if not right["now"]:
            continue
        cells = [
            f"{statistics.mean(each):.1f}%, {min(each):.1f} to {max(each):.1f}, {statistics.stdev(each):.2f}"
            for each in right.values()
        ]
        gain = compare_paired(right["now"], right["0.18.0"])
        cells.append(between(gain.mean, gain.low, gain.high, 1))
        seconds = [statistics.mean(row["seconds"] for row in rows) for rows in versions.values()]
        cells.append(", ".join(f"{each:.0f}" for each in seconds))
        name = f"{found['sizes'][study][0]:,} pages, {words[study]}"
        count = f"{found['labels'][study]:,} | {len(right['now'])}"
        lines.append(f"| {name} | {count} | {' | '.join(cells)} |")
    return "\n".join(lines)


def held_out_table() -> str:
    """What cross-validation gives where labels are few, beside holding out once, and beside how it was done up to 0.11.0."""
    rows, before = (
        result("held-out")["rows"],
        {r["case"]: r["ways"] for r in result("held-out-before")["rows"]},
    )
    ways = [*rows[0]["ways"], "cv=3 up to 0.11.0"]
    lines = [
        "| | " + " | ".join(ways) + " | cv=3 over cv=1, paired 95% interval |",
        "|---|" + "---|" * (len(ways) + 1),
    ]
    for r in rows:
        shown = [
            f"{100 * statistics.mean(values['test_accuracy']):.1f}"
            for values in (*r["ways"].values(), before[r["case"]]["cv=3"])
        ]
        lines.append(
            f"| {r['case']} | {' | '.join(shown)} | {gain_between(r['gain_of_cv_3']['over cv=1'])} |"
        )

    def price(of: list[dict[str, Any]], way: str) -> str:
        each = sorted(
            sum(one[way]["seconds"]) / sum(one["cross-entropy, cv=1"]["seconds"]) for one in of
        )
        return f"{statistics.median(each):.1f} ({each[0]:.1f} to {each[-1]:.1f})"

    now = [r["ways"] for r in rows]
    then = [before[r["case"]] for r in rows]
    accuracies = [
        [value for one in of for value in one["cv=3"]["test_accuracy"]] for of in (now, then)
    ]
    ece = {
        way: statistics.mean(value for one in now for value in one[way]["ece"])
        for way in ("cv=1", "cv=3")
    }
    lines += [
        "",
        f"Time, one cross-entropy run with cv=1 as 1, median and range over the rows: {price(now, 'cv=3')} with cv=3, "
        f"{price(then, 'cv=3')} up to 0.11.0; {price(now, 'cv=1')} with cv=1. "
        f"Accuracy against 0.11.0 over all {len(accuracies[0])} draws, paired: "
        f"{gain_between(compare_paired(*accuracies).to_dict())}. Calibration error on test nodes, mean of all: {ece['cv=1']:.3f} with cv=1, "
        f"{ece['cv=3']:.3f} with cv=3.",
    ]
    return "\n".join(lines)

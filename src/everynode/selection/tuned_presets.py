"""From studies to files: the best trial of each as a preset (TOML), with the record of its study; and all trials as a table (CSV)."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import math
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from optuna.trial import TrialState

from everynode.errors import DataError, UsageError
from everynode.presets import Place, tuned_rows
from everynode.selection.study import FIRST_SEED, Study
from everynode.selection.study_storage import Database, Journal, Trials, hidden, is_url

HEADER = """\
# Settings that `everynode tune` found on validation nodes, by [SPLIT.GRAPH.BACKBONE.OBJECTIVE]; the table `study` below each is the
# record of its study. Written by `everynode tune export`; not by hand.
"""


def studies(place: str | Path) -> list[Trials]:
    """The studies with a complete trial of an output folder, or of a database."""
    place = str(place)
    if is_url(place):
        all_studies: list[Trials] = [*Database.all(place)]
    else:
        all_studies = [Journal(path) for path in sorted((Path(place) / "tune").glob("*.journal"))]
    found = [study for study in all_studies if study.best()]
    if not found:
        where, flag = (
            (hidden(place), "--storage")
            if is_url(place)
            else (Path(place) / "tune", f"--out {place}")
        )
        raise UsageError(
            f"There is no study with a complete trial in {where}: run `everynode tune` with {flag} first."
        )
    return found


def rows_of(journals: Sequence[Trials]) -> dict[Place, dict[str, Any]]:
    """A preset's row for each study."""
    made: dict[Place, tuple[str, dict[str, Any]]] = {}
    for journal in journals:
        study = journal.study
        place = (study.split, study.dataset, study.backbone, study.objective)
        if place in made:
            both = f"{made[place][0]} and {journal.where}"
            raise DataError(
                f"{both} are two studies for {' '.join(place)}, and a preset takes one: move the other away."
            )
        made[place] = journal.where, _row(journal)
    return {place: row for place, (_, row) in made.items()}


def merge(file: Path, rows: dict[Place, dict[str, Any]]) -> str:
    """The preset of a file, if it is there, with these rows added or replaced, as TOML."""
    before = tuned_rows(str(file)) if file.exists() else {}
    return "\n".join([HEADER, *_lines(before | rows)])


def trials_csv(journals: Sequence[Trials]) -> str:
    """The trials of these studies, one line each: what was tried, where it came from, what it got on validation, and which was chosen.

    How long a trial took is left out, so that the same studies give the same bytes.
    """
    rows: list[dict[str, Any]] = []
    for journal in journals:
        study, best = journal.study, journal.best()
        place = {
            "study": study.name,
            "split": study.split,
            "dataset": study.dataset,
            "objective": study.objective,
        }
        for trial in journal.ended():
            got = {
                "trial": trial.number,
                "from": trial.user_attrs.get("from"),
                "given_up": trial.state == TrialState.PRUNED,
                "chosen": best is not None and trial.number == best.number,
                "val_accuracy": statistics.mean(trial.user_attrs["accuracies"]),
                "val_accuracies": json.dumps(trial.user_attrs["accuracies"]),
                "val_loss": statistics.mean(trial.user_attrs["losses"]),
            }
            rows.append({**place, **got, **dataclasses.asdict(study.settings(trial.params))})
    out = io.StringIO()
    writer = csv.DictWriter(
        out, dict.fromkeys(name for row in rows for name in row), lineterminator="\n"
    )
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _row(journal: Trials) -> dict[str, Any]:
    """The best trial's settings, all of them, so that later defaults change nothing; and the study's record."""
    best = journal.best()
    assert best is not None
    settings = {
        name: value
        for name, value in dataclasses.asdict(journal.study.settings(best.params)).items()
        if value is not None
    }
    del settings["backbone"]
    return {**settings, "study": record(journal)}


def record(journal: Trials) -> dict[str, Any]:
    """What a study did and found: nothing in it depends on when, or how quickly, it was done."""
    study, best, ended = journal.study, journal.best(), journal.ended()
    assert best is not None
    return {
        "graph_digest": study.graph_digest,
        "trials": len(ended),
        "pruned": sum(trial.state == TrialState.PRUNED for trial in ended),
        study.over: study.count,
        "first_seed": FIRST_SEED,
        "searched": list(study.space),
        "started_from": list(study.known),
        "best_trial": best.number,
        "val_accuracy": best.value,
        "val_accuracies": best.user_attrs["accuracies"],
        "val_loss": statistics.mean(best.user_attrs["losses"]),
        "versions": ", ".join(
            f"{name} {version}" for name, version in sorted(study.versions.items())
        ),
        "command": command(study, len(ended)),
    }


def command(study: Study, trials: int) -> str:
    """The command that does the study."""
    flags = {
        "split": study.split,
        "backbone": study.backbone,
        "objective": study.objective,
        study.over: study.count,
        "trials": trials,
    }
    starts = dict.fromkeys(
        name[: name.rindex(".toml ")] + ".toml" for name in study.known if ".toml " in name
    )
    words = [
        f"--{name.replace('_', '-')} {value}" for name, value in (flags | study.changes).items()
    ]
    words += [f"--start-from {file}" for file in starts]
    return " ".join(["everynode tune", study.dataset, *words]).replace(" True", "")


def _lines(rows: dict[Place, dict[str, Any]]) -> Iterator[str]:
    for place, row in sorted(rows.items()):
        table = ".".join(_key(name) for name in place)
        yield f"[{table}]"
        yield from (
            f"{name} = {_value(value)}"
            for name, value in row.items()
            if not isinstance(value, dict)
        )
        for name, inner in row.items():
            if isinstance(inner, dict):
                yield f"[{table}.{_key(name)}]"
                yield from (f"{key} = {_value(value)}" for key, value in inner.items())
        yield ""


def _key(name: str) -> str:
    """A key of a TOML table.

    >>> _key("geom-gcn"), _key("mi+tv")
    ('geom-gcn', '"mi+tv"')
    """
    return (
        name
        if name.replace("-", "").replace("_", "").isalnum() and name.isascii()
        else _value(name)
    )


def _value(value: Any) -> str:
    """A value in TOML, which for text, numbers and lists of them is JSON.

    >>> _value("raw"), _value(0.05), _value([1, 2]), _value(True)
    ('"raw"', '0.05', '[1, 2]', 'true')
    """
    return "inf" if value == math.inf else json.dumps(value)

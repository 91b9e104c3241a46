"""Presets from studies: the best trials as TOML with the record of their study; trials as CSV."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tomli_w
from optuna.trial import TrialState

from everynode import plugins
from everynode.errors import DataError, UsageError
from everynode.presets import Place, tuned_rows
from everynode.selection.study import FIRST_SEED, Study, flag_words
from everynode.selection.study_storage import Database, Journal, Trials, hidden, is_url

HEADER = """\
# Settings that `everynode tune` chose on validation nodes, by [SPLIT.GRAPH.BACKBONE.OBJECTIVE].
# The table `study` below each is the record of its study. Written by `everynode tune export`.

"""


def studies(place: str | Path) -> list[Trials]:
    """Return the studies with a complete trial in an output folder or a database."""
    place = str(place)
    if is_url(place):
        stored: list[Trials] = [*Database.all(place)]
        where, flag = hidden(place), "--storage"
    else:
        folder = Path(place) / "tune"
        stored = [Journal(path) for path in sorted(folder.glob("*.journal"))]
        where, flag = str(folder), f"--out {place}"
    complete = [study for study in stored if study.best()]
    if not complete:
        raise UsageError(
            f"There is no study with a complete trial in {where}: run `everynode tune` with "
            f"{flag} first."
        )
    return complete


def rows_of(journals: Sequence[Trials]) -> dict[Place, dict[str, Any]]:
    """Return the row of a preset for each study."""
    rows: dict[Place, dict[str, Any]] = {}
    origins: dict[Place, str] = {}
    for journal in journals:
        study = journal.study
        place = Place(study.split, study.dataset, study.backbone, study.objective)
        if place in rows:
            raise DataError(
                f"{origins[place]} and {journal.where} are two studies for {' '.join(place)}, and "
                "a preset takes one: move the other away."
            )
        rows[place], origins[place] = _row(journal), journal.where
    return rows


def merge(file: Path, rows: dict[Place, dict[str, Any]]) -> str:
    """Return the preset in a file, if it exists, with these rows added or replaced, as TOML."""
    before = tuned_rows(str(file)) if file.exists() else {}
    return to_toml(before | rows)


def to_toml(rows: dict[Place, dict[str, Any]]) -> str:
    """Return the rows of a preset as TOML, sorted by place."""
    nested: dict[str, Any] = {}
    for (split, graph, backbone, objective), row in sorted(rows.items()):
        graphs = nested.setdefault(split, {})
        graphs.setdefault(graph, {}).setdefault(backbone, {})[objective] = row
    return HEADER + tomli_w.dumps(nested)


def check_preset(file: Path) -> None:
    """Refuse a file that cannot become a preset, before anything is tuned."""
    if file.suffix != ".toml":
        raise UsageError(f"{file} must end in .toml: --preset needs that ending for a file.")
    if file.exists():
        tuned_rows(str(file))


def trials_csv(journals: Sequence[Trials]) -> str:
    """Return one line per trial: its settings, origin and validation results.

    The time of a trial is left out, so that the same studies give the same bytes.
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
            runs = trial.user_attrs["accuracies"]
            outcome = {
                "trial": trial.number,
                "from": trial.user_attrs.get("from"),
                "pruned": trial.state == TrialState.PRUNED,
                "chosen": best is not None and trial.number == best.number,
                **_scores(study.base.monitor, statistics.mean(runs), json.dumps(runs)),
                "val_loss": statistics.mean(trial.user_attrs["losses"]),
            }
            settings = dataclasses.asdict(study.settings(trial.params))
            rows.append({**place, **outcome, **settings})
    out = io.StringIO()
    writer = csv.DictWriter(
        out, dict.fromkeys(name for row in rows for name in row), lineterminator="\n"
    )
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _row(journal: Trials) -> dict[str, Any]:
    """Return the record, and all settings of the best trial, which later defaults cannot change."""
    best = journal.best()
    assert best is not None
    settings = {
        name: value
        for name, value in dataclasses.asdict(journal.study.settings(best.params)).items()
        if value not in (None, ())
    }
    del settings["backbone"]
    return {**settings, "study": record(journal)}


def record(journal: Trials) -> dict[str, Any]:
    """Return the record of a study and its best result, without times and dates."""
    study, best, ended = journal.study, journal.best(), journal.ended()
    assert best is not None
    return {
        "graph_digest": study.graph_digest,
        "trials": len(ended),
        "pruned": sum(trial.state == TrialState.PRUNED for trial in ended),
        study.over: study.count,
        "first_seed": FIRST_SEED,
        "searched": list(study.space),
        "started_from": list(study.starts),
        "best_trial": best.number,
        **_scores(study.base.monitor, best.value, best.user_attrs["accuracies"]),
        "val_loss": statistics.mean(best.user_attrs["losses"]),
        "versions": ", ".join(
            f"{name} {version}" for name, version in sorted(study.versions.items())
        ),
        "command": command(study, len(ended)),
    }


def _scores(monitor: str, mean: float | None, runs: list[float] | str) -> dict[str, Any]:
    """Return the monitored metric of a trial, under its own name."""
    if monitor == "accuracy":
        return {"val_accuracy": mean, "val_accuracies": runs}
    return {"monitor": monitor, "val_score": mean, "val_scores": runs}


def command(study: Study, trials: int) -> str:
    """Return the command that repeats the study."""
    flags = {
        "split": study.split,
        "backbone": study.backbone,
        "objective": study.objective,
        study.over: study.count,
        "trials": trials,
    }
    terms = study.objective.split("+")
    starts = dict.fromkeys(
        name[: name.rindex(".toml ")] + ".toml" for name in study.starts if ".toml " in name
    )
    words = [flag_words(name, value) for name, value in (flags | study.changes).items()]
    words += [f"--start-from {file}" for file in starts]
    # The folder of a plugin is private: only its name is written.
    words += [f"--plugin {Path(file).name}" for file in plugins.files({study.backbone, *terms})]
    return " ".join(["everynode tune", study.dataset, *words])

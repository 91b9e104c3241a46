"""``everynode tune``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from everynode.cli.interrupt import INTERRUPTED, ctrl_c_raises
from everynode.cli.options import DataOptions, EngineOptions, JsonFlag, ModelOptions, QuietFlag
from everynode.console import say
from everynode.errors import EverynodeError, UsageError


def tune(
    name: str,
    /,
    *,
    model: ModelOptions = ModelOptions(),  # noqa: B008 - frozen
    data: DataOptions = DataOptions(),  # noqa: B008 - frozen
    engine: EngineOptions = EngineOptions(),  # noqa: B008 - frozen
    trials: int = 50,
    seeds: int | None = None,
    folds: int | None = None,
    space: Path | None = None,
    start_from: Annotated[tuple[Path, ...], Parameter(negative="")] = (),
    out: Path = Path("runs"),
    storage: str | None = None,
    export: Path | None = None,
    json_output: JsonFlag = False,
    quiet: QuietFlag = False,
) -> int:
    """Tune the settings for a graph, a backbone and an objective, on validation nodes only.

    The study is kept in --out, or in a --storage for several machines. The same command continues
    an interrupted study, adds trials with a higher --trials, and shares the work if it runs
    several times at once. A setting with a flag is not searched. Give cross-entropy (--objective
    ce) as many trials as the objective that it is compared with.

    Parameters
    ----------
    name
        A graph of `everynode data list`.
    trials
        Number of trials in all, with those of earlier calls.
    seeds
        Runs that judge a trial; bad trials are pruned after the first ones. Default: 3.
    folds
        Judge a trial by one seed on each of the first folds, instead of several seeds on one fold.
    space
        A TOML file with the search space of a new study: [all], [backbone.NAME], [term.NAME].
    start_from
        Presets (.toml) whose settings a new study tries first. Default: the built-in presets.
    out
        Folder of the studies.
    storage
        URL of a database for the study (postgresql://USER@HOST/DATABASE): the same command on
        several machines shares its trials.
    export
        Add the best settings to this file, for --preset.
    """
    import torch
    from optuna.exceptions import StorageInternalError

    from everynode.datasets.entries import find
    from everynode.datasets.files import Root
    from everynode.objective_names import objective_name
    from everynode.presets import Place
    from everynode.progress import Bar
    from everynode.report.study import figure
    from everynode.report.study_text import study_lines
    from everynode.selection.study import plan_study
    from everynode.selection.study_storage import Database, Journal
    from everynode.selection.tuned_presets import check_preset, merge, rows_of
    from everynode.selection.tuning import notes, progress_note, result
    from everynode.selection.tuning import tune as run_trials
    from everynode.storage.atomic import write_atomically

    if any(number is not None and number < 1 for number in (trials, seeds, folds)):
        raise UsageError("--trials, --seeds and --folds must be at least 1.")
    if folds is not None and seeds is not None:
        raise UsageError("--folds takes one seed on each fold: leave out --seeds.")
    model.load_plugins()
    run_many = engine.start(data.device)
    if export:
        check_preset(export)
    torch.set_num_threads(1)
    graph, split = data.load(name)
    if folds is not None and folds > len(graph.splits):
        raise UsageError(
            f"Split {split!r} of {name} has {len(graph.splits)} fold(s), not {folds}: choose fewer "
            "--folds, or another --split."
        )
    place = Place(split, name, model.backbone, objective_name(model.objective))
    drawn = {"per_class": data.per_class, "split_seed": data.split_seed}
    extra = (drawn if split == "random" else {}) | ({"directed": True} if data.directed else {})
    study = plan_study(
        place, preset=model.preset, changes=model.named, graph_changes=extra,
        digest=find(name).digest(split, Root.find(data.data_dir)),
        over="seeds" if folds is None else "folds", count=folds or seeds or 3,
        space=space, start_from=start_from,
    )  # fmt: skip
    path = out / "tune" / f"{study.name}.journal"
    journal = Journal(path, study) if storage is None else Database(storage, study)
    for note in notes(journal, study, trials, new_space=bool(space), new_starts=bool(start_from)):
        say(note, quiet)
    title, done = f"{name} {model.backbone} {study.objective}", len(journal.ended())
    try:
        with ctrl_c_raises(), Bar(title, trials, unit="trials", show=not quiet, done=done) as bar:

            def on_trial() -> None:
                bar.advance(progress_note(journal), to=len(journal.ended()))

            on_trial()
            run_trials(
                journal, graph, trials, workers=engine.workers, engine=run_many, on_trial=on_trial
            )
    except KeyboardInterrupt:
        say(f"\nInterrupted: {journal.where} has the ended trials. The same command continues.")
        return INTERRUPTED
    except StorageInternalError as error:
        raise EverynodeError(
            f"{journal.where} does not answer ({error}): run the same command when it does."
        ) from error
    best = result(journal)
    picture = path.with_suffix(".svg")
    write_atomically(picture, figure(journal, best["importance"]).encode())
    say(f"The plot of the study is {picture}.", quiet)
    if export:
        write_atomically(export, merge(export, rows_of([journal])).encode())
        say(f"{export} has the best settings: use them with --preset {export}.", quiet)
    print(json.dumps(best) if json_output else "\n".join(study_lines(journal, best)))
    return 0


def tune_export(place: str, file: Path, /, *, quiet: QuietFlag = False) -> int:
    """Add the best settings of every study to a preset, or list all trials.

    Parameters
    ----------
    place
        The --out or the --storage of `everynode tune`.
    file
        The preset (.toml), for --preset; its other rows stay. Or a table (.csv) of all trials.
    """
    from everynode.report.text import count
    from everynode.selection.tuned_presets import check_preset, merge, rows_of, studies, trials_csv
    from everynode.storage.atomic import write_atomically

    if file.suffix == ".csv":
        stored = studies(place)
        write_atomically(file, trials_csv(stored).encode())
        trials = count(sum(len(study.ended()) for study in stored), "trial")
        say(f"{file} has {trials} of {len(stored)} studies.", quiet)
        return 0
    check_preset(file)
    rows = rows_of(studies(place))
    write_atomically(file, merge(file, rows).encode())
    say(f"{file} has the best settings of {len(rows)} studies.", quiet)
    return 0

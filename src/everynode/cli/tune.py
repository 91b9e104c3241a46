"""``everynode tune``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from everynode.cli.interrupt import INTERRUPTED, ctrl_c_raises
from everynode.cli.options import DataOptions, EngineOptions, JsonFlag, ModelOptions, QuietFlag
from everynode.console import say
from everynode.errors import EverynodeError, UsageError

if TYPE_CHECKING:
    from everynode.selection.study import Study
    from everynode.selection.study_storage import Trials


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
    """Find settings for a graph, a backbone and an objective, on validation nodes only: test nodes are never looked at.

    The study is kept in --out, or in a --storage that several machines reach: interrupted, or killed, the same command goes on; with
    more --trials it goes further; and several such commands at once share the work. Give cross-entropy (--objective ce) as many trials as
    the objective that it is compared with.
    A setting that is given by a flag is not searched.

    Parameters
    ----------
    name
        A graph of `everynode data list`.
    trials
        How many settings are tried in all, those of earlier calls included.
    seeds
        How many runs judge a trial; bad trials are given up after the first ones; default: 3.
    folds
        Instead of several seeds on one fold: one seed on each of the first so many folds.
    space
        A TOML file like everynode's presets/search.toml: what a new study searches instead.
    start_from
        Presets (.toml files) that a new study tries first, instead of everynode's own.
    out
        The folder of the studies.
    storage
        Keep the study in this database instead, by its URL (postgresql://USER@HOST/DATABASE): the same command on several machines shares
        its trials.
    export
        Put the best settings into this file, which --preset then takes.
    """
    import torch
    from optuna.exceptions import StorageInternalError

    from everynode.progress import Bar
    from everynode.report.study import figure
    from everynode.report.text import count
    from everynode.selection.study_storage import Database, Journal
    from everynode.selection.tuned_presets import merge, rows_of
    from everynode.selection.tuning import tune as do_trials
    from everynode.storage.atomic import write_atomically

    if any(given is not None and given < 1 for given in (trials, seeds, folds)):
        raise UsageError("--trials, --seeds and --folds must be at least 1.")
    if folds is not None and seeds is not None:
        raise UsageError("--folds goes over the first folds with one seed each: leave out --seeds.")
    do_many = engine.start()
    if engine.engine == "ray" and data.device != "cpu":
        raise UsageError("--engine ray runs on CPUs: leave out --device.")
    if export:
        _check_preset(export)
    torch.set_num_threads(1)
    graph, split = data.load(name)
    if folds is not None and folds > len(graph.splits):
        raise UsageError(
            f"Split {split!r} of {name} has {len(graph.splits)} fold(s), not {folds}: choose fewer --folds or another --split."
        )
    study = _study(
        name,
        split,
        model,
        data,
        "seeds" if folds is None else "folds",
        folds or seeds or 3,
        space,
        start_from,
    )
    path = out / "tune" / f"{study.name}.journal"
    journal = Journal(path, study) if storage is None else Database(storage, study)
    if space and journal.study.space != study.space:
        raise UsageError(
            f"{journal.where} was begun with another search space: name another --out or --storage."
        )
    done = len(journal.ended())
    if done:
        say(f"{done} trials are in {journal.where} already.", quiet)
    if (journal.study.base, journal.study.space) != (study.base, study.space):
        say(
            "The presets have changed since: the study goes on with the settings and the search space that it was begun with.",
            quiet,
        )
    if start_from and journal.study.known != study.known:
        say("--start-from is for a new study: this one goes on from where it was begun.", quiet)
    tried = {trial.user_attrs.get("from") for trial in journal.ended()}
    if left_out := [known for known in journal.study.known if known not in tried][
        max(0, trials - done) :
    ]:
        starts = f"the {len(journal.study.known)} settings to start from"
        say(
            f"{count(trials, 'trial')} cannot try all of {starts}: left out are {', '.join(left_out)}.",
            quiet,
        )
    try:
        title = f"{name} {model.backbone} {study.objective}"
        with ctrl_c_raises(), Bar(title, trials, unit="trials", show=not quiet, done=done) as bar:
            bar.advance(_note(journal), to=done)

            def on_trial() -> None:
                bar.advance(_note(journal), to=len(journal.ended()))

            do_trials(
                journal, graph, trials, workers=engine.workers, engine=do_many, on_trial=on_trial
            )
    except KeyboardInterrupt:
        say(
            f"\nInterrupted: the trials that have ended are in {journal.where}, and the same command goes on from there."
        )
        return INTERRUPTED
    except StorageInternalError as error:
        raise EverynodeError(
            f"{journal.where} does not answer any more ({error}): the same command goes on when it does."
        ) from error
    result = _result(journal)
    picture = path.with_suffix(".svg")
    picture.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(picture, figure(journal, result["importance"]).encode())
    say(f"The picture of the study is {picture}.", quiet)
    if export:
        write_atomically(export, merge(export, rows_of([journal])).encode())
        say(f"The best settings are in {export}: take them with --preset {export}.", quiet)
    if json_output:
        print(json.dumps(result))
    else:
        _show(journal, result)
    return 0


def tune_export(place: str, file: Path, /, *, quiet: QuietFlag = False) -> int:
    """Put the best settings of every study of a folder or a database into a preset, and leave what else it has; or list all trials.

    Parameters
    ----------
    place
        The --out of `everynode tune`, or its --storage.
    file
        The preset (.toml), which --preset then takes; it need not be there yet. Or a table (.csv) of all trials, which is made anew.
    """
    from everynode.report.text import count
    from everynode.selection.tuned_presets import merge, rows_of, studies, trials_csv
    from everynode.storage.atomic import write_atomically

    if file.suffix == ".csv":
        found = studies(place)
        write_atomically(file, trials_csv(found).encode())
        trials = count(sum(len(study.ended()) for study in found), "trial")
        say(f"{trials} of {len(found)} studies are in {file}.", quiet)
        return 0
    _check_preset(file)
    rows = rows_of(studies(place))
    write_atomically(file, merge(file, rows).encode())
    say(f"The best settings of {len(rows)} studies are in {file}.", quiet)
    return 0


def _check_preset(file: Path) -> None:
    """Refuse a file that cannot become a preset before anything is tuned."""
    from everynode.presets import tuned_rows

    if file.suffix != ".toml":
        raise UsageError(f"{file} must end in .toml: that is how --preset knows a file.")
    if file.exists():
        tuned_rows(str(file))


def _study(
    name: str, split: str, model: ModelOptions, data: DataOptions, over: Literal["seeds", "folds"], count: int, space: Path | None,
    start_from: Sequence[Path],
) -> Study:  # fmt: skip
    """The study that the flags describe."""
    from everynode.datasets.entries import find
    from everynode.datasets.files import Root
    from everynode.objective_names import objective_name
    from everynode.selection.study import Study, known_parameters, search_space

    objective = objective_name(model.objective)
    searched = {
        key: choice
        for key, choice in search_space(model.backbone, objective, space).items()
        if key not in model.named
    }
    known = known_parameters(searched, name, split, model.backbone, objective, start_from)
    changes = (
        model.named
        if model.preset == "default"
        else {"preset": Path(model.preset).name, **model.named}
    )
    if split == "random":
        changes |= {"per_class": data.per_class, "split_seed": data.split_seed}
    if data.directed:
        changes |= {"directed": True}
    if space:
        changes |= {"space": space.name}
    digest = find(name).digest(split, Root.find(data.data_dir))
    base = model.settings(name, split, objective)
    return Study(
        name, digest, split, model.backbone, objective, over, count, base, searched, known, changes
    )


def _note(journal: Trials) -> str:
    from everynode.experiments.run_spec import short

    best = journal.best()
    return f"best {short(best.value)} (trial {best.number})" if best else ""


def _result(journal: Trials) -> dict[str, Any]:
    from everynode.selection.tuned_presets import record
    from everynode.selection.tuning import importance

    best, study = journal.best(), journal.study
    assert best is not None
    where = {
        "dataset": study.dataset,
        "split": study.split,
        "backbone": study.backbone,
        "objective": study.objective,
    }
    seconds = round(sum(trial.user_attrs["seconds"] for trial in journal.ended()), 1)
    return {
        **where,
        **record(journal),
        "seconds": seconds,
        "parameters": study.values(best.params),
        "importance": importance(journal),
    }


def _show(journal: Trials, result: dict[str, Any]) -> None:
    """The best settings, and how much each parameter mattered."""
    from everynode.experiments.run_spec import short
    from everynode.report.text import count

    study = journal.study
    print(f"{study.dataset}, {study.backbone}, {study.objective}, split {study.split}: ", end="")
    runs = count(study.count, study.over.removesuffix("s"))
    print(
        f"{count(result['trials'], 'trial')} of {runs} ({result['pruned']} given up early), {result['seconds']:.0f} s"
    )
    print(
        f"  best mean validation accuracy  {short(result['val_accuracy'])} % (trial {result['best_trial']})"
    )
    for parameter in dict.fromkeys(
        [*study.space, *result["importance"]]
    ):  # whether a term is off has an importance of its own
        value, weight = result["parameters"].get(parameter, ""), result["importance"].get(parameter)
        shown = f"{value:.4g}" if isinstance(value, float) else str(value)
        print(
            f"  {parameter:13} {shown:>12}"
            + (
                f"   importance {weight:.2f} {'#' * round(20 * weight)}"
                if weight is not None
                else ""
            )
        )

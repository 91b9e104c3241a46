"""``everynode tune``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from everynode.cli.engine_options import EngineOptions
from everynode.cli.files import OpenGraph, OwnGraph, open_graph
from everynode.cli.interrupt import INTERRUPTED, ctrl_c_raises
from everynode.cli.options import DataOptions, JsonFlag, ModelOptions, QuietFlag
from everynode.console import say
from everynode.errors import EverynodeError
from everynode.extras import need_extra

if TYPE_CHECKING:
    from everynode.graph import Graph
    from everynode.selection.study import Study
    from everynode.selection.study_storage import Trials
    from everynode.training.process_pool import Engine


@Parameter(name="*")
@dataclass(frozen=True)
class StudyFlags:
    """The trials of a study, and where it is kept.

    Parameters
    ----------
    trials : int
        Total number of trials, including those of earlier calls.
    seeds : int, optional
        Number of runs per trial; bad trials are pruned after the first runs. Default: 3.
    folds : int, optional
        Evaluate a trial by one seed on each of the first folds, not by several seeds on one fold.
    space : Path, optional
        A TOML file with the search space of a new study: [all], [backbone.NAME], [term.NAME].
    start_from : tuple of Path
        Presets (.toml) whose settings a new study tries first. Default: the built-in presets.
    out : Path
        Folder of the studies.
    storage : str, optional
        URL of a database for the study (postgresql://USER@HOST/DATABASE). The same command on
        several machines then shares the trials.
    export : Path, optional
        Add the best settings to this file, for --preset.
    """

    trials: int = 50
    seeds: int | None = None
    folds: int | None = None
    space: Path | None = None
    start_from: Annotated[tuple[Path, ...], Parameter(negative="")] = ()
    out: Path = Path("runs")
    storage: str | None = None
    export: Path | None = None

    def check(self) -> None:
        """Refuse wrong numbers, and a file that cannot become a preset."""
        from everynode.selection.study import check_numbers
        from everynode.selection.tuned_presets import check_preset

        check_numbers(self.trials, self.seeds, self.folds)
        if self.export:
            check_preset(self.export)

    def plan(self, opened: OpenGraph, model: ModelOptions, data: DataOptions) -> Study:
        """Return the study of a model on a graph."""
        from everynode.objective_names import objective_name
        from everynode.presets import Place
        from everynode.selection.study import judging_runs, plan_study

        name, graph, split, digest = opened
        where = f"Split {split!r} of {name}"
        over, count = judging_runs(self.seeds, self.folds, len(graph.splits), where)
        place = Place(split, name, model.backbone, objective_name(model.objective))
        return plan_study(
            place, preset=model.preset, changes=model.named, graph_changes=data.changes(split),
            digest=digest, over=over, count=count, space=self.space, start_from=self.start_from,
        )  # fmt: skip

    def picture(self, study: Study) -> Path:
        """Return the file of the plot of a study, beside its journal."""
        return self.out / "tune" / f"{study.name}.svg"

    def open(self, study: Study) -> Trials:
        """Open the stored trials of a study."""
        from everynode.selection.study_storage import Database, Journal

        if self.storage is not None:
            return Database(self.storage, study)
        return Journal(self.picture(study).with_suffix(".journal"), study)


def tune(
    name: str | None = None,
    /,
    *,
    own: OwnGraph = OwnGraph(),  # noqa: B008 - frozen
    model: ModelOptions = ModelOptions(),  # noqa: B008 - frozen
    data: DataOptions = DataOptions(),  # noqa: B008 - frozen
    engine: EngineOptions = EngineOptions(),  # noqa: B008 - frozen
    wanted: StudyFlags = StudyFlags(),  # noqa: B008 - frozen
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
        A graph of `everynode data list`. Or give your own: --nodes and --edges.
    """
    need_extra("tune", "`everynode tune`")
    import torch

    from everynode.report.study_text import study_lines
    from everynode.selection.tuning import notes, result

    wanted.check()
    model.load_plugins()
    run_many = engine.start(data.device)
    torch.set_num_threads(1)
    opened = open_graph(name, own, data, quiet or json_output)
    study = wanted.plan(opened, model, data)
    journal = wanted.open(study)
    for note in notes(
        journal, study, wanted.trials, new_space=bool(wanted.space),
        new_starts=bool(wanted.start_from),
    ):  # fmt: skip
        say(note, quiet)
    workers = engine.workers_on(data.device)
    if not _run_trials(journal, opened.graph, wanted.trials, workers, run_many, quiet):
        return INTERRUPTED
    best = result(journal)
    _write(journal, best["importance"], wanted.picture(study), wanted.export, quiet)
    print(json.dumps(best) if json_output else "\n".join(study_lines(journal, best)))
    return 0


def _run_trials(
    journal: Trials, graph: Graph, trials: int, workers: int | None, run_many: Engine, quiet: bool
) -> bool:
    """Run the trials with a progress bar; return whether all of them ended."""
    from optuna.exceptions import StorageInternalError

    from everynode.progress import Bar
    from everynode.selection.tuning import progress_note, tune

    study, done = journal.study, len(journal.ended())
    title = f"{study.dataset} {study.backbone} {study.objective}"
    try:
        with ctrl_c_raises(), Bar(title, trials, unit="trials", show=not quiet, done=done) as bar:

            def on_trial() -> None:
                bar.advance(progress_note(journal), to=len(journal.ended()))

            on_trial()
            tune(journal, graph, trials, workers=workers, engine=run_many, on_trial=on_trial)
    except KeyboardInterrupt:
        say(f"\nInterrupted: {journal.where} has the ended trials. The same command continues.")
        return False
    except StorageInternalError as error:
        raise EverynodeError(
            f"{journal.where} does not answer ({error}): run the same command when it does."
        ) from error
    return True


def _write(
    journal: Trials, importance: dict[str, float], picture: Path, export: Path | None, quiet: bool
) -> None:
    """Write the plot of a study, and its best settings to the file of ``--export``."""
    from everynode.report.study import figure
    from everynode.selection.tuned_presets import merge, rows_of
    from everynode.storage.atomic import write_atomically

    write_atomically(picture, figure(journal, importance).encode())
    say(f"The plot of the study is {picture}.", quiet)
    if export:
        write_atomically(export, merge(export, rows_of([journal])).encode())
        say(f"{export} has the best settings: use them with --preset {export}.", quiet)


def tune_export(place: str, file: Path, /, *, quiet: QuietFlag = False) -> int:
    """Add the best settings of every study to a preset, or list all trials.

    Parameters
    ----------
    place
        The --out or the --storage of `everynode tune`.
    file
        The preset (.toml), for --preset; its other rows stay. Or a table (.csv) of all trials.
    """
    need_extra("tune", "`everynode tune`")
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


tune_app = App(name="tune")
tune_app.default(tune)
tune_app.command(tune_export, name="export")

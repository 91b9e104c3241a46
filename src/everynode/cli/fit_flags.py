"""The flags of ``everynode fit``: the labels, the portfolio, and the output."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from everynode.cli.options import FILES, OUTPUT, TRAINING, CandidateOptions, JsonFlag, QuietFlag
from everynode.console import say
from everynode.errors import UsageError, require
from everynode.fit_options import EFFORT, FitOptions, fit_declarations

if TYPE_CHECKING:
    from everynode.batches import Batches
    from everynode.estimator import NodeClassifier
    from everynode.graph import Graph

#: The number of networks, as :mod:`everynode.fit_options` declares it.
NETWORKS = fit_declarations()["n_estimators"]


@Parameter(name="*", group=TRAINING)
@dataclass(frozen=True)
class LabelFlags:
    """How labels are held out, and what the delivered model learns from.

    Parameters
    ----------
    split : str, optional
        The column in --nodes with train, val or test. Default: hold out labels. `none` ignores a
        split in the file.
    split_by : str, optional
        A column of dates or numbers in --nodes: the fifth of the labels with the latest values is
        the test part.
    edge_type : str, optional
        The column of --edges with the type of each link: each type gets its own weight, chosen on
        held-out labels.
    fold : int, optional
        The fold, from 0, where a file (npz) has several.
    test_share : float, optional
        Share of the labels to keep for the test. Default: 0.2 with 50 labels or more, else none. 0
        trains on all labels.
    val_share : float, optional
        Share of the training labels to hold out once for validation, if --split has no val.
        Default: 0.2 with 100 training labels or more.
    cv : int, optional
        Number of folds in which each training label is held out once; the networks are averaged. 1
        holds out --val-share once. Default without --val-share: 2 to 5, by --effort and labels; for
        a named model, 3 with fewer than 100 training labels, else 1.
    refit : bool, optional
        After the quality is measured, train the chosen models again on all labels. The result
        predicts the unlabeled nodes and is saved. Default: yes, but without the validation and test
        nodes of your own split; --refit takes these too. --no-refit delivers the measured model, as
        a benchmark needs it.
    clean_labels : bool
        Leave out labels that look wrong, if held-out labels are predicted better without them.
        Takes two or three more refits, which start over after an interruption.
    seed : int
        Seed of held-out labels, weights, dropout and halves.
    """

    split: str | None = None
    split_by: Annotated[str | None, Parameter(group=FILES)] = None
    edge_type: Annotated[str | None, Parameter(group=FILES)] = None
    fold: int | None = None
    test_share: float | None = None
    val_share: float | None = None
    cv: int | None = None
    refit: bool | None = None
    clean_labels: Annotated[bool, Parameter(negative="")] = False
    seed: int = 0

    def hold_out(self, graph: Graph, effort: str, *, is_portfolio: bool) -> tuple[Graph, list[str]]:
        """Return the graph with its split, and sentences about it."""
        from everynode.io.assign_splits import assign_splits
        from everynode.selection.portfolio_fit import folds_of_nodes

        if self.split_by is not None and self.test_share is not None:
            raise UsageError(
                "--test-share has no effect with --split-by: the latest fifth of the labels is the "
                "test part. Leave it out."
            )
        own_folds = is_portfolio and self.cv is None and self.val_share is None
        graph, notes = assign_splits(
            graph, fold=self.fold, test_share=self.test_share, val_share=self.val_share,
            seed=self.seed,
            cv=partial(folds_of_nodes, effort) if own_folds else self.cv,
        )  # fmt: skip
        if is_portfolio and len(graph.nodes("val")):
            notes.append("The validation nodes choose the models, their weights and their epochs.")
        return graph, notes


@Parameter(name="*", group=TRAINING)
@dataclass(frozen=True)
class PortfolioFlags:
    """The size of the portfolio, and the probabilities of its networks.

    Parameters
    ----------
    effort : {"quick", "standard", "best"}
        Size of the portfolio: quick (seconds), standard (minutes), or best (more models, and
        several networks of each).
    time_limit : str, optional
        Time limit of the portfolio, such as 90s, 10m or 1h. Default: 18s for quick, 10m for
        standard, none for best. The refit on all labels may take as long again.
    for_new_nodes : bool
        Leave out models that cannot predict nodes outside this graph.
    n_estimators : int
        As in :mod:`everynode.fit_options`.
    calibrate : bool
        Choose a temperature on the validation nodes, so that probabilities match frequencies.
    """

    effort: Literal["quick", "standard", "best"] = EFFORT
    time_limit: str | None = None
    for_new_nodes: Annotated[bool, Parameter(negative="")] = False
    n_estimators: Annotated[int, Parameter(help=NETWORKS.help)] = FitOptions.n_estimators
    calibrate: bool = True

    def check(self, model: CandidateOptions) -> None:
        """Refuse a bad number of networks, and flags without effect on a named model."""
        require(self.n_estimators >= 1, "n_estimators", "fit", NETWORKS.expected, self.n_estimators)
        for name in () if model.is_portfolio else ("effort", "time_limit", "for_new_nodes"):
            if getattr(self, name) != getattr(PortfolioFlags, name):
                raise UsageError(
                    f"--{name.replace('_', '-')} has no effect: it is for the portfolio, and "
                    "--backbone, --objective or --preset names what to train. Leave it out."
                )

    def classifier(
        self,
        model: CandidateOptions,
        labels: LabelFlags,
        *,
        batch_size: Batches | Literal["auto"] | None,
        workers: int | None,
        device: str,
        quiet: bool,
    ) -> NodeClassifier:
        """Return the classifier that these flags describe."""
        from everynode.estimator import NodeClassifier

        return NodeClassifier(
            model.backbone, model.objective, effort=self.effort, time_limit=self.time_limit,
            settings=model.named | {"preset": model.preset, "n_estimators": self.n_estimators},
            cv=labels.cv if labels.cv and labels.cv > 1 else "auto", n_jobs=workers,
            batch_size=batch_size, device=device, random_state=labels.seed, verbose=not quiet,
        )  # fmt: skip


@Parameter(name="*", group=OUTPUT)
@dataclass(frozen=True)
class OutputFlags:
    """The output folder and the messages.

    Parameters
    ----------
    out : Path, optional
        Folder of the results. Default: runs/fit-NODES.
    coverage : float, optional
        Add a column `set` to predictions.csv: classes that contain the true one with this
        probability, such as 0.9 (needs 9 held-out labels).
    slice_by : tuple of str
        A column of --nodes whose values divide the accuracy, beside degree, component and class
        size. May be given several times. It is written beside the predictions.
    dry_run : bool
        Show how the files were read, and stop.
    resume : bool
        Continue an interrupted run of the same command in --out; --no-resume starts over.
    threads : int
        Threads of torch. One thread gives the same result for the same seed.
    json_output : bool
        ``--json``.
    quiet : bool
        ``--quiet``.
    """

    out: Path | None = None
    coverage: float | None = None
    slice_by: Annotated[tuple[str, ...], Parameter(name="--slice", negative="")] = ()
    dry_run: Annotated[bool, Parameter(negative="")] = False
    resume: bool = True
    threads: int = 1
    json_output: JsonFlag = False
    quiet: QuietFlag = False

    def show(self, line: str) -> None:
        """Show a line, on stderr with --json or --quiet."""
        (say if self.quiet or self.json_output else print)(line)

"""Table: ogbn-arxiv, official split."""

from everynode.experiments.experiment import Experiment, with_and_without

EXPERIMENT = Experiment(
    id="arxiv",
    title="ogbn-arxiv",
    reference="Table 6 (table:ogbn_arxiv)",
    about="OGB's split by year. The paper's number for GCNII, 72.74, belongs to a dense variant"
    " with residuals and batch norm, from GCNII's own list. `--stand-in generated` does "
    "the same runs on a generated graph, apart from this table.",
    over="seeds",
    view="table",
    cells=lambda: with_and_without("ogbn-arxiv", ("ogbn-arxiv",), "official"),
    digits=2,
)

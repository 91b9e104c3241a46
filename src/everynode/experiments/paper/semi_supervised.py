"""Table: semi-supervised node classification, public split."""

from everynode.experiments.declare import Experiment, with_and_without

EXPERIMENT = Experiment(
    id="semi-supervised",
    title="Semi-supervised node classification",
    reference="Table 3 (table:semisupervised_summary)",
    about="Public split, 20 labelled nodes a class. The paper: 2 layers of GCN and GAT, 64 of GCNII; tuned settings have their own depth.",
    over="seeds",
    view="table",
    cells=lambda: with_and_without("semi-supervised", ("cora", "citeseer", "pubmed"), "public"),
)

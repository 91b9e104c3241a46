"""Table: fully supervised node classification on the homophilic graphs, ten folds."""

from everynode.experiments.experiment import Experiment, with_and_without

EXPERIMENT = Experiment(
    id="homophilic",
    title="Fully supervised, homophilic graphs",
    reference="Table 5 (table:homophilic_fully)",
    about="Geom-GCN's ten folds (48% training, 32% validation, 20% test). On Cora they cover only the largest component. "
    "Citeseer's 15 nodes without a label count nowhere here; loaders of the time took them for class 0, up to 4 test nodes of a fold.",
    over="folds",
    view="table",
    cells=lambda: with_and_without("homophilic", ("cora", "citeseer", "pubmed"), "geom-gcn"),
)

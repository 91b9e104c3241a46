"""Tables: the other systems of the paper's tables, run by one protocol, on ten folds."""

from everynode.experiments.experiment import Experiment
from everynode.experiments.paper.heterophilic import GRAPHS
from everynode.experiments.systems import rows_beside_enc

EXPERIMENT = Experiment(
    id="systems-folds",
    title="Thirty systems, ten folds",
    reference="Tables 5 and 7, the other rows",
    about="As systems, on Geom-GCN's ten folds, with undirected edges. Several authors have one-way"
    " arcs on these graphs, and several others chose on test nodes.",
    over="folds",
    view="table",
    cells=lambda: [
        *rows_beside_enc("homophilic", ("cora", "citeseer", "pubmed"), "geom-gcn", ("MLP",)),
        *rows_beside_enc("heterophilic", GRAPHS[:-1], "geom-gcn", ("MLP",)),
    ],
    in_paper=False,
    presets=("systems",),
)

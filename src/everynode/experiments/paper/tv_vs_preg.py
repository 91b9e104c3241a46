"""Table: total variation, plain and edge-aware, against P-reg."""

from everynode.experiments.declare import PAPERS_CORNELL, Cell, Experiment, paper_name, published
from everynode.experiments.estimate import SIZES

GRAPHS = ("cora", "citeseer", "pubmed", PAPERS_CORNELL, "texas", "wisconsin")


def cells() -> list[Cell]:
    """P-reg with two weights: of the sum over nodes, as this paper writes it, and of the mean, as P-reg's authors do."""
    made = []
    for graph in GRAPHS:
        nodes = SIZES[graph][0]
        for row, papers_row, objective, changes in (
            ("GCN", "GCN", "ce", ()),
            ("GCN + TV (plain)", "GCN + TV (plain)", "tv", (("tv_gate", "none"),)),
            ("GCN + P-reg (sum)", "GCN + P-reg", "preg", (("preg", 1.0),)),
            ("GCN + P-reg (mean)", "GCN + P-reg", "preg", (("preg", 1 / nodes),)),
            ("GCN + TV (edge-aware)", "GCN + TV (edge-aware)", "tv", ()),
        ):
            number = published("tv-vs-preg", papers_row, paper_name(graph))
            against = None if row == "GCN" else "GCN"
            made.append(Cell(row, graph, graph, "geom-gcn", "gcn", objective, changes=changes, published=number, against=against))
    return made


EXPERIMENT = Experiment(
    id="tv-vs-preg",
    title="Total variation against P-reg",
    reference="table:TVvsLaplacianReg",
    about="GCN with one smoothness term at a time, ten folds. The paper writes P-reg as a sum over all nodes and gives no weight; with a "
    "weight of 1 the sum leaves cross-entropy no say. P-reg's authors take the mean over nodes: that is the other row.",
    over="folds",
    view="table",
    cells=cells,
    digits=2,
)

"""Table: total variation, plain and edge-aware, against P-reg."""

from everynode.experiments.declare import PAPERS_CORNELL, Cell, Experiment, paper_name, published

#: Row, objective, and changes to the settings.
VARIANTS = (
    ("GCN", "ce", ()),
    ("GCN + TV (plain)", "tv", (("tv_gate", "none"),)),
    ("GCN + P-reg", "preg", (("preg", 1.0),)),
    ("GCN + TV (edge-aware)", "tv", ()),
)

EXPERIMENT = Experiment(
    id="tv-vs-preg",
    title="Total variation against P-reg",
    reference="table:TVvsLaplacianReg",
    about="GCN with one smoothness term at a time, ten folds. The paper gives no weight for P-reg; here it is 1.",
    over="folds",
    view="table",
    cells=lambda: [
        Cell(
            row, graph, graph, "geom-gcn", "gcn", objective, changes=changes, published=published("tv-vs-preg", row, paper_name(graph)),
            against=None if row == "GCN" else "GCN",
        )
        for row, objective, changes in VARIANTS
        for graph in ("cora", "citeseer", "pubmed", PAPERS_CORNELL, "texas", "wisconsin")
    ],
    digits=2,
)  # fmt: skip

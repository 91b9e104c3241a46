"""Table: the graphs' statistics."""

from everynode.data.entries import CATALOGUE
from everynode.experiments.declare import Cell, Experiment, paper_name, published

COLUMNS = {
    "classes": "classes",
    "nodes": "nodes",
    "edges": "edges",
    "features": "features",
    "node homophily": "node_homophily",
    "edge homophily": "edge_homophily",
}
GRAPHS = ("cora", "citeseer", "pubmed", "chameleon", "actor", "squirrel", "cornell-legacy", "texas", "wisconsin", "cornell", "ogbn-arxiv")


def _published(graph: str, column: str) -> float | None:
    if graph == "cornell":
        return None  # the paper's is the legacy file
    return published("homophily", paper_name(graph)) if column == "edge homophily" else published("datasets", paper_name(graph), column)


EXPERIMENT = Experiment(
    id="datasets",
    title="The graphs",
    reference="Table 2 (table:datasets)",
    about="Counted from the public files: edges undirected, once each, without self-loops and repeats (the paper counts some of them). "
    "The paper says that its homophily is Geom-GCN's, the mean over nodes; its numbers are those of edge homophily, self-loops counted "
    "(Texas 0.11, Wisconsin 0.21), those of Citeseer and Pubmed swapped.",
    over="once",
    view="table",
    cells=lambda: [
        Cell(
            graph, column, graph, CATALOGUE[graph].splits[0], task="describe", metric=f"statistics.{key}",
            published=_published(graph, column),
        )
        for graph in GRAPHS
        for column, key in COLUMNS.items()
    ],
    unit="",
    digits=2,
)  # fmt: skip

"""Table: the graphs' statistics."""

from everynode.datasets.entries import CATALOGUE
from everynode.experiments.experiment import Cell, Experiment, paper_name, published

COLUMNS = {
    "classes": "classes",
    "nodes": "nodes",
    "edges": "edges",
    "features": "features",
    "node homophily": "node_homophily",
    "edge homophily": "edge_homophily",
}
GRAPHS = (
    "cora",
    "citeseer",
    "pubmed",
    "chameleon",
    "actor",
    "squirrel",
    "cornell-legacy",
    "texas",
    "wisconsin",
    "cornell",
    "ogbn-arxiv",
)


def _published(graph: str, column: str) -> float | None:
    if graph == "cornell":
        return None  # the paper's is the legacy file
    return (
        published("homophily", paper_name(graph))
        if column == "edge homophily"
        else published("datasets", paper_name(graph), column)
    )


EXPERIMENT = Experiment(
    id="datasets",
    title="The graphs",
    reference="Table 2 (table:datasets)",
    about="Counted from the public files: edges undirected, once each, without self-loops and repeats. The paper's counts follow no one "
    "rule: Cornell's, Texas's and Wisconsin's are of directed edges without self-loops, Chameleon's of directed edges with them, "
    "Squirrel's of undirected ones with them. Of its homophily (Tables 5 and 7) it says that it is Geom-GCN's, the mean over nodes; the "
    "numbers are those of edge homophily with self-loops counted, which Texas and Wisconsin have many of (with them, 0.11 and 0.21 as "
    "printed), and those of Citeseer and Pubmed are swapped.",
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

"""Table: accuracy over the number of layers, public split."""

from everynode.experiments.experiment import BACKBONES, Cell, Experiment, method, published


def cells() -> list[Cell]:
    """Return cells for three graphs and backbones, 2 to 64 layers, with and without ENC."""
    return [
        Cell(
            method(backbone, objective), str(num_layers), graph, "public", backbone, objective,
            panel=graph, changes=(("num_layers", num_layers),),
            published=published("depth", graph, method(backbone, objective), str(num_layers)),
            against=method(backbone, "ce") if objective == "enc" else None,
        )
        for graph in ("cora", "citeseer", "pubmed")
        for backbone in BACKBONES
        for objective in ("ce", "enc")
        for num_layers in (2, 4, 8, 16, 32, 64)
    ]  # fmt: skip


EXPERIMENT = Experiment(
    id="depth",
    title="Accuracy over the number of layers",
    reference="Table 4 (table:semisupervised)",
    about="Public split. GCN and GAT lose accuracy with depth (over-smoothing). The paper finds"
    " that ENC slows this down.",
    over="seeds",
    view="table",
    cells=cells,
    x="layers",
)

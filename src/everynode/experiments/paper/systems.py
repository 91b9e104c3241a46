"""Tables: the other systems of the paper's tables, run by one protocol, on fixed splits."""

from everynode.experiments.experiment import Cell, Experiment, published
from everynode.experiments.systems import find_system, rows_beside_enc, rows_with_enc
from everynode.presets import read_preset

#: Systems that the table of the public splits does not have.
FURTHER = ("MLP", "Label propagation", "GCN (Kipf)", "GPRGNN", "H2GCN", "FAGCN", "GCNII*")
#: The systems that are run with ENC on top.
UNDER_ENC = (
    "MLP", "GCN (Kipf)", "APPNP", "GPRGNN", "H2GCN", "FAGCN", "DropEdge", "GRAND (Feng)", "PTA",
)  # fmt: skip
#: The light weights of ENC, which are safe on graphs that they were not tuned on.
LIGHT = {"mi": 0.05, "tv": 0.5, "cvg": 0.05, "cvg_every": 4}


def depth() -> list[Cell]:
    """Return the other systems of the table over depth."""
    return [
        find_system(row).cell(
            row, f"{graph} {layers}", graph, "public", panel="depth",
            changes=(("num_layers", int(layers)),),
            published=published("depth", graph, row, layers),
        )
        for graph in ("cora", "citeseer", "pubmed")
        for row in ("GCN (Drop)", "JKNet (Drop)", "GCNII*", "PDE-GCN_D", "EGNN")
        for layers in read_preset("published")["depth"][graph].get(row, {})
    ]  # fmt: skip


def cells() -> list[Cell]:
    """Return the cells of the public splits, of depth, of ogbn-arxiv, and of ENC on top."""
    graphs = ("cora", "citeseer", "pubmed")
    return [
        *rows_beside_enc("semi-supervised", graphs, "public", FURTHER),
        *depth(),
        *rows_beside_enc("ogbn-arxiv", ("ogbn-arxiv",), "official"),
        *rows_with_enc(UNDER_ENC, "citeseer", "public", LIGHT),
    ]


EXPERIMENT = Experiment(
    id="systems",
    title="Thirty systems, one protocol",
    reference="Tables 3, 4 and 6, the other rows",
    about="Every other system of the paper's tables on fixed splits, with the settings that its"
    " authors published (presets/systems.toml), the epoch chosen on validation, ten seeds."
    " GCN, GAT, GCNII and ENC have the paper's settings. A mark says where the published"
    " number was made otherwise. The last table puts light weights of MI, TV and CVG on top.",
    over="seeds",
    view="table",
    cells=cells,
    in_paper=False,
    presets=("systems",),
)

"""Figure: the nodes of Cora in the plane."""

from everynode.experiments.experiment import Cell, Experiment

EXPERIMENT = Experiment(
    id="tsne",
    title="Cora's nodes in the plane",
    reference="Figure 1 (fig:tsne)",
    about="t-SNE of the input features and of the predicted probabilities of GCN and ENC-GCN, "
    "public split, seed 0; colors are the true classes. A picture, not a measurement. "
    "The paper's caption says that ENC gains 4.3%: the summary has ours.",
    over="once",
    view="maps",
    cells=lambda: [
        Cell("input features", "map", "cora", "public", task="tsne-input", metric="positions"),
        Cell("GCN", "map", "cora", "public", task="tsne", metric="positions"),
        Cell("ENC-GCN", "map", "cora", "public", objective="enc", task="tsne", metric="positions"),
    ],
)

"""The settings of the systems that the paper compares with: of one model or one term each."""

from __future__ import annotations

from dataclasses import dataclass

from everynode.declaration import Search, document, setting, weight


@dataclass(frozen=True, kw_only=True)
class SystemSettings:
    """The settings of single systems; :class:`~everynode.settings.Settings` adds all others.

    Parameters
    ----------
    (generated)
    """

    # ---------------------------------------------------------------- the model
    chebnet_filters: int = setting(
        3, "Number of filters in each ChebNet or MagNet layer, which reaches one hop less.",
        "Model", low=1, search=Search(choices=(2, 3, 4)), of_backbones=("chebnet", "magnet"),
    )  # fmt: skip
    pairnorm_scale: float = setting(
        1.0, "Length of each node's row after PairNorm.", "Model", above=0,
        search=Search(0.1, 10.0, log=True), of_backbones=("pairnorm",),
    )  # fmt: skip
    attention_heads: int = setting(
        8, "Number of attention heads, a divisor of the hidden channels.", "Model", low=1,
        search=Search(choices=(1, 2, 4, 8)), of_backbones=("gatv2", "supergat", "grand_diffusion"),
    )  # fmt: skip
    supergat_edge_share: float = setting(
        0.8, "Share of the edges that superGAT's loss draws in each pass.", "Model", above=0,
        high=1, of_backbones=("supergat",),
    )  # fmt: skip
    egnn_residual: float = setting(
        0.2, "Share of the residual connections in each EGNN layer.", "Model", low=0, high=1,
        of_backbones=("egnn",),
    )  # fmt: skip
    egnn_initial: float = setting(
        0.1, "Part of egnn_residual that comes from the opening features.", "Model", low=0,
        high=1, of_backbones=("egnn",),
    )  # fmt: skip
    ggcn_decay: float = setting(
        1.0, "How slowly the deeper GGCN layers fade; 0: they do not fade.", "Model", low=0,
        search=Search(choices=(0.0, 0.5, 1.0)), of_backbones=("ggcn",),
    )  # fmt: skip
    graphcon_damping: float = setting(
        0.0, "Damping of the velocity in each GraphCON step.", "Model", low=0,
        search=Search(0.0, 1.0), of_backbones=("graphcon",),
    )  # fmt: skip
    graphcon_pull: float = setting(
        0.0, "Pull of the position towards 0 in each GraphCON step.", "Model", low=0,
        search=Search(0.0, 1.0), of_backbones=("graphcon",),
    )  # fmt: skip
    pdegcn_step: float = setting(
        0.5, "Step size of each PDE-GCN layer.", "Model", above=0,
        search=Search(0.1, 2.0, log=True), of_backbones=("pdegcn",),
    )  # fmt: skip
    diffusion_time: float = setting(
        8.0, "Time at which the diffusion of GRAND ends, in steps of at most 1.", "Model", above=0,
        search=Search(1.0, 20.0), of_backbones=("grand_diffusion",),
    )  # fmt: skip
    magnet_charge: float = setting(
        0.25, "Charge q of MagNet's Laplacian; 0 ignores the direction of arcs.", "Model", low=0,
        high=0.25, search=Search(choices=(0.0, 0.05, 0.1, 0.15, 0.2, 0.25)),
        of_backbones=("magnet",),
    )  # fmt: skip

    # ---------------------------------------------------------------- the objective
    neighbor_consistency: float = weight(
        0.0, "neighbor consistency", "Weight of the divergence of neighbors from their sharpened"
        " mean (NASA).", "neighbor_consistency:NeighborConsistency",
        Search(0.05, 2.0, log=True), enc=False, paper=False,
    )  # fmt: skip
    neighbor_temperature: float = setting(
        0.5, "Sharpening of the targets of neighbor_consistency; lower is sharper.", "Objective",
        above=0, search=Search(0.2, 0.9), of_term="neighbor_consistency", option="temperature",
    )  # fmt: skip
    graphmix: float = weight(
        0.0, "GraphMix", "Weight of GraphMix's loss, in place of cross-entropy (ce=0).",
        "graph_mix:GraphMixLoss", Search(0.3, 3.0, log=True), enc=False, paper=False,
    )  # fmt: skip
    graphmix_unlabeled: float = setting(
        10.0, "Final weight of the unlabeled nodes in GraphMix's loss.", "Objective", low=0,
        search=Search(0.1, 20.0, log=True), of_term="graphmix", option="unlabeled",
    )  # fmt: skip
    lpa: float = weight(
        0.0, "label propagation", "Weight of the labels that the edge weights propagate"
        " (GCN-LPA).", "label_loss:LabelLoss", Search(0.1, 20.0, log=True), enc=False, paper=False,
    )  # fmt: skip
    lpa_steps: int = setting(
        5, "Steps of label propagation in the term lpa.", "Objective", low=1,
        search=Search(choices=(1, 3, 5, 9)), of_term="lpa", option="steps",
    )  # fmt: skip
    vat: float = weight(
        0.0, "VAT", "Weight of virtual adversarial training (GraphVAT).",
        "virtual_adversarial:VirtualAdversarial", Search(0.05, 2.0, log=True), enc=False,
        paper=False,
    )  # fmt: skip
    vat_xi: float = setting(
        1e-4, "Length of the random step from which VAT finds its direction.", "Objective",
        above=0, of_term="vat", option="xi",
    )  # fmt: skip
    graph_adversarial: float = weight(
        0.0, "graph adversarial", "Weight of the distance from neighbors under an adversarial step"
        " (GraphVAT).", "graph_adversarial:GraphAdversarial", Search(0.05, 2.0, log=True),
        enc=False, paper=False,
    )  # fmt: skip

    # ---------------------------------------------------------------- training
    replace_edges: float = setting(
        0.0, "Probability that a training pass replaces a neighbor by a neighbor of it (NASA).",
        "Training", low=0, high=1, off=0.0,
    )  # fmt: skip


document(SystemSettings)

"""Training on sampled subgraphs, in one process or several."""

"""Selection on validation nodes: successive halving, cross-validation, ensembles, and tuning."""

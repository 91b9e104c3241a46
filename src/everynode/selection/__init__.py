"""Choosing a model: successive halving, ensembles, and tuning on validation nodes."""

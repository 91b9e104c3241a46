"""The tables of README and docs: a function makes each from the files in ``results/``."""

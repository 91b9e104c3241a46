"""Comparison with stock PyG in one process: the library behind ``everynode bench``."""

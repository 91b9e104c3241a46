"""Explanations: the columns, words, neighbors and labeled nodes that carried a prediction."""

"""Runs: their specifications, execution, store, statistics and analysis."""

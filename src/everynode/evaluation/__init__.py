"""Evaluation: metrics, intervals, calibration, and the table of predictions."""

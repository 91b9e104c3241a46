"""Torture everynode: fuzzed files, hostile models, kills, full disks, shared stores, long use.

``python -m tools.torture --help``. Every part continues from ``results/torture.json``.
"""

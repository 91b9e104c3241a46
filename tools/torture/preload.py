"""Imports of the server that commands are forked from: all of everynode, and what it imports late."""

import importlib
import pkgutil

import everynode

for _module in pkgutil.walk_packages(everynode.__path__, "everynode."):
    if _module.name.rpartition(".")[2] != "__main__":
        importlib.import_module(_module.name)
for _name in ("matplotlib", "optuna", "pandas", "sklearn.feature_extraction.text", "sqlalchemy"):
    importlib.import_module(_name)

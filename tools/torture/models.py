"""Hostile model folders: the loader refuses them in one sentence, or predicts finite numbers."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from tools.torture.fuzz import MEGABYTES, SECONDS, stopwatch
from tools.torture.inputs import BYTE_DAMAGES, EXTREMES


def models(seeds: Iterable[int], failures: list[dict[str, Any]]) -> Counter[str]:
    """Damage a saved model once for each seed, and load it."""
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        whole = Path(name, "whole")
        graph = _train(whole)
        for seed in seeds:
            folder = Path(name, "damaged")
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(whole, folder)
            what = damage(folder, random.Random(seed))
            with stopwatch() as watch:
                outcome, detail = _load(folder, graph)
            if watch.seconds > SECONDS:
                outcome, detail = "slow", f"{watch.seconds:.1f} s"
            elif watch.megabytes > MEGABYTES:
                outcome, detail = "large", f"{watch.megabytes:.0f} MB"
            outcomes["inputs"] += 1
            outcomes[outcome] += 1
            if outcome not in ("loaded", "refused"):
                failures.append(
                    {"part": "models", "seed": seed, "outcome": outcome, "what": what,
                     "detail": detail[-300:]}
                )  # fmt: skip
    return outcomes


def damage(folder: Path, chance: random.Random) -> str:
    """Change one card or one file of weights; usually with a digest that fits again."""
    from everynode.training.model_card import card_digest

    path = chance.choice(sorted(path for path in folder.rglob("*") if path.is_file()))
    renewed = chance.random() < 0.8
    if path.suffix != ".json":
        path.write_bytes(chance.choice(BYTE_DAMAGES)(path.read_bytes(), chance))
        name = "member.json" if path.stem == "preparation" else "model.json"
        card_path = path.with_name(name)
        card = json.loads(card_path.read_bytes())
        card["weights_sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    else:
        card_path, card = path, json.loads(path.read_bytes())
        for _ in range(chance.choice((1, 1, 2))):
            _change(card, chance)
    if renewed and isinstance(card, dict):
        card["digest"] = card_digest(card)
    card_path.write_text(json.dumps(card))
    return f"{path.relative_to(folder)}{' with a digest that fits' if renewed else ''}"


def _change(card: Any, chance: random.Random) -> None:
    """Change, remove, or exchange a value anywhere in the card."""
    owners: list[Any] = [card]
    for owner in owners:
        values = owner.values() if isinstance(owner, dict) else owner
        owners += [value for value in values if isinstance(value, dict | list) and value]
    owner = chance.choice([*owners, *[card] * 5])
    key = chance.choice(list(owner) if isinstance(owner, dict) else list(range(len(owner))))
    action = chance.random()
    if action < 0.6:
        owner[key] = chance.choice([*EXTREMES, 10**9, 10**400, "gcn", "a"])
    elif action < 0.8:
        del owner[key]
    elif isinstance(owner, list):
        owner.append(owner[0])
    else:
        owner[chance.choice(["new", *owner])] = owner[key]


def _train(folder: Path) -> Any:
    import everynode as en

    random_state = np.random.default_rng(0)
    labels = np.arange(60) % 3
    features = (random_state.normal(size=(60, 4)) + labels[:, None]).astype(np.float32)
    edges = np.stack([np.arange(60), (np.arange(60) + 3) % 60])
    model = en.NodeClassifier(
        effort="quick", settings={"epochs": 3, "hidden_channels": 4}, n_jobs=1
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(features, np.array(["a", "b", "c"])[labels], edge_index=edges)
    model.save(folder)
    return features, edges


def _load(folder: Path, graph: Any) -> tuple[str, str]:
    import everynode as en
    from everynode.errors import EverynodeError

    features, edges = graph
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = en.NodeClassifier.load(folder)
            probabilities = model.predict_proba(features, edge_index=edges)
    except EverynodeError as error:
        text = str(error)
        return ("refused", "") if "\n" not in text.strip() else ("several lines", text)
    except Exception:
        return "traceback", traceback.format_exc()
    if probabilities.shape != (60, 3) or not np.isfinite(probabilities).all():
        return "wrong predictions", str(probabilities.shape)
    return "loaded", ""

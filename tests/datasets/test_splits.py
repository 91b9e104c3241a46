import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from everynode.datasets import cross_validation, hold_out, random_split, stratified_split
from everynode.errors import DataError, UsageError

LABELS = (
    st.lists(st.integers(-1, 4), min_size=1, max_size=120)
    .filter(lambda v: max(v) >= 0)
    .map(torch.tensor)
)
SEEDS = st.integers(0, 2**32)


def counts(labels, nodes=None):
    values = labels if nodes is None else labels[nodes]
    return torch.bincount(values[values >= 0], minlength=5)


def check_parts(labels, parts):
    together = torch.cat(list(parts))
    assert len(together.unique()) == len(together)
    assert bool((labels[together] >= 0).all())
    for part in parts:
        assert part.dtype == torch.int64
        assert torch.equal(part, part.sort().values)


@given(LABELS, st.integers(1, 30), st.integers(0, 40), st.integers(0, 60), SEEDS)
def test_random_split(labels, per_class, num_val, num_test, seed):
    split = random_split(labels, per_class, num_val, num_test, seed=seed)
    check_parts(labels, split)
    expected = [0 if c == 0 else max(1, min(per_class, c - 1)) for c in counts(labels).tolist()]
    assert counts(labels, split.train).tolist() == expected
    rest = int((labels >= 0).sum()) - len(split.train)
    if rest >= num_val + num_test:
        assert (len(split.val), len(split.test)) == (num_val, num_test)
    else:
        assert len(split.val) + len(split.test) == rest
        assert abs(len(split.val) - rest * num_val / (num_val + num_test)) <= 0.5
    again = random_split(labels, per_class, num_val, num_test, seed=seed)
    assert all(torch.equal(a, b) for a, b in zip(split, again, strict=True))


@given(LABELS, st.floats(0.05, 0.9), st.floats(0, 1), SEEDS)
def test_stratified_split(labels, train, val_share, seed):
    val = val_share * (1 - train)
    split = stratified_split(labels, train, val, seed=seed)
    check_parts(labels, split)
    total = counts(labels)
    n = int(total.sum())
    assert sum(len(part) for part in split) == n
    assert bool((counts(labels, split.train)[total > 0] >= 1).all())
    assert len(split.train) == max(round(train * n), int((total > 0).sum()))
    assert len(split.val) == min(round(val * n), n - len(split.train))
    assert bool(((counts(labels, split.train) - train * total).abs() <= 5).all())


@given(LABELS, st.integers(2, 6), SEEDS)
def test_cross_validation(labels, folds, seed):
    given_nodes = torch.arange(len(labels)).flip(0)[: max(1, len(labels) // 2 + 1)]
    total = counts(labels, given_nodes)
    if not bool((total > 1).any()):
        with pytest.raises(DataError):
            cross_validation(given_nodes, labels, folds, seed)
        return
    made = cross_validation(given_nodes, labels, folds, seed)
    held = torch.cat([val for _, val in made])
    assert len(held.unique()) == len(held), "each is held out once"
    assert counts(labels, held).tolist() == [
        0 if count == 1 else count for count in total.tolist()
    ], "but the only one of its class never"
    assert 1 <= len(made) <= folds
    for train, val in made:
        known = given_nodes[labels[given_nodes] >= 0]
        assert sorted([*train.tolist(), *val.tolist()]) == sorted(known.tolist())
        assert bool((counts(labels, train)[total > 0] >= 1).all()), (
            "every class is learned in every fold"
        )
        assert abs(len(val) - len(held) / len(made)) < 1
        share = counts(labels, val) - torch.where(total > 1, total, 0) / folds
        assert len(made) < folds or bool((share.abs() < 1).all())


@given(LABELS, st.floats(0.01, 0.99), SEEDS)
def test_hold_out(labels, fraction, seed):
    given_nodes = torch.arange(len(labels)).flip(0)[: max(1, len(labels) // 2 + 1)]
    total = counts(labels, given_nodes)
    if int(total.max()) < 2:
        with pytest.raises(DataError):
            hold_out(given_nodes, labels, fraction, seed)
        return
    train, val = hold_out(given_nodes, labels, fraction, seed)
    check_parts(labels, (train, val))
    assert set(train.tolist()) | set(val.tolist()) == {
        i for i in given_nodes.tolist() if labels[i] >= 0
    }
    assert bool((counts(labels, train)[total > 0] >= 1).all())
    assert len(val) == min(
        max(1, round(fraction * int(total.sum()))), int((total - 1).clamp(min=0).sum())
    )


def test_hold_out_takes_the_same_share_of_every_class():
    labels = torch.tensor([0] * 40 + [1] * 20 + [2] * 20)
    _, val = hold_out(torch.arange(80), labels, 0.25)
    assert counts(labels, val).tolist() == [10, 5, 5, 0, 0]


def test_seeds_differ():
    labels = torch.arange(300) % 3
    assert not torch.equal(
        random_split(labels, 20, seed=0).train, random_split(labels, 20, seed=1).train
    )
    assert not torch.equal(
        stratified_split(labels, seed=0).train, stratified_split(labels, seed=1).train
    )


def test_more_training_nodes_contain_the_fewer():
    """In a study of labels per class, a seed with more labels adds to the ones before."""
    labels = torch.arange(600) % 3
    few, many = (random_split(labels, k, seed=3).train for k in (10, 20))
    assert set(few.tolist()) < set(many.tolist())


def test_refusals():
    labels = torch.tensor([0, 1])
    with pytest.raises(UsageError, match="'per_class' of random_split must be >= 1"):
        random_split(labels, 0)
    with pytest.raises(UsageError, match="'num_val, num_test' of random_split"):
        random_split(labels, 1, num_val=-1)
    with pytest.raises(UsageError, match="'train' of stratified_split"):
        stratified_split(labels, 1.0)
    with pytest.raises(UsageError, match=r"'val' of stratified_split must be between 0 and 0.4"):
        stratified_split(labels, 0.6, 0.5)
    with pytest.raises(UsageError, match="'fraction' of hold_out"):
        hold_out(torch.arange(2), labels, 0)
    with pytest.raises(DataError, match="no node has one"):
        random_split(torch.tensor([-1, -1]), 1)
    with pytest.raises(
        DataError, match="every class has only one training node, and there are 2 classes"
    ):
        hold_out(torch.arange(2), labels, 0.5)

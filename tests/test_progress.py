"""How long it still takes, as the bar reckons it."""

from __future__ import annotations

import re

import pytest

import everynode.progress as module
from everynode.progress import Bar


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until it is told to go on; it returns how to tell it."""
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    now = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])

    def go_on(seconds: float) -> None:
        now[0] += seconds

    return go_on


def test_steps_of_many_minutes_have_a_time_left_from_the_first_on(clock):
    with Bar("reproduce", 4, unit="runs", show=True, seconds=4 * 600.0) as bar:
        assert bar.left() == pytest.approx(2400)
        clock(300)
        assert bar.left() == pytest.approx(2100), "it goes down while a step takes its time"
        clock(900)
        bar.advance(seconds=600.0)
        assert bar.left() == pytest.approx((1200 + 600) / (600 + 600) * 1800), (
            "a step took twice as long; one more counts as foretold"
        )
        for _ in range(3):
            clock(1200)
            bar.advance(seconds=600.0)
        assert bar.left() == 0.0


def test_steps_that_are_done_already_take_no_time_and_do_not_count_for_the_pace(clock):
    with Bar("reproduce", 103, unit="runs", show=False, seconds=300.0, at_once=2) as bar:
        for _ in range(100):
            bar.advance()
        assert bar.left() == pytest.approx(150), "two at once"
        clock(100)
        bar.advance(seconds=200.0)
        assert bar.left() == pytest.approx(50)


def test_a_long_step_weighs_more_than_a_short_one(clock):
    with Bar("reproduce", 2, unit="runs", show=False, seconds=1001.0) as bar:
        clock(1)
        bar.advance(seconds=1.0)
        assert bar.left() == pytest.approx(1000)


def test_without_an_estimate_the_pace_tells_and_what_was_done_before_does_not(clock):
    for before in (1, 4):
        with Bar("tune", 10, unit="trials", show=False, done=before) as bar:
            assert bar.left() is None
            for more in (1, 2):
                clock(40)
                bar.advance(to=before + more)
            assert bar.left() == pytest.approx(40 * (8 - before))
            clock(500)
            assert bar.left() == 0.0


def test_a_training_that_goes_on_and_one_that_begins_after_another_have_a_pace_of_their_own(clock):
    with Bar("fit", 2000, unit="epochs", show=False) as bar:
        bar.advance(to=501)
        assert bar.left() is None
        for epoch in range(502, 601):
            clock(0.1)
            bar.advance(to=epoch)
        assert bar.left() == pytest.approx(140)
        for epoch in range(1, 21):
            clock(0.2)
            bar.advance(to=epoch)
            assert bar.left() == (pytest.approx(0.2 * (2000 - epoch)) if epoch > 10 else None)


def test_the_first_step_compiles_and_tells_nothing_of_the_others(clock, capsys):
    with Bar("fit", 1500, unit="epochs", show=True, early=True) as bar:
        clock(7)
        bar.advance("val 50.0%", to=1)
        assert bar.left() is None
        for epoch in range(2, 11):
            clock(0.01)
            bar.advance(to=epoch)
            assert bar.left() is None, "the pace of a moment is none"
        clock(0.01)
        bar.advance(to=11)
        assert bar.left() == pytest.approx(0.01 * 1489)
        for epoch in range(12, 700):
            clock(0.01)
            bar.advance("val 80.0%", to=epoch)
    first, later = capsys.readouterr().err.splitlines()
    assert first == "fit: 1/1500 epochs, val 50.0%"
    assert re.fullmatch(r"fit: 5\d\d/1500 epochs, this training about \d+ s more, val 80.0%", later)


def test_nothing_to_do_is_no_time(clock):
    with Bar("reproduce", 3, unit="runs", show=False, seconds=0.0) as bar:
        assert bar.left() == 0.0
        bar.advance()
        assert bar.left() == 0.0


def test_outside_a_terminal_a_line_tells_what_is_left(clock, capsys):
    with Bar("homophilic", 10, unit="runs", show=True, seconds=6000.0) as bar:
        clock(600)
        bar.advance("pubmed gcnii-64 enc: test 86.1", seconds=600.0)
        clock(1)
        bar.advance("too soon", seconds=600.0)
    assert (
        capsys.readouterr().err
        == "homophilic: 1/10 runs, 1.5 h left, pubmed gcnii-64 enc: test 86.1\n"
    )


def test_the_time_left_goes_by_early_stopping_and_not_by_the_ceiling(monkeypatch):
    """At one epoch a second, the best epoch 9 and a patience of 40, 30 seconds are left."""
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    bar = Bar("fit", 1500, unit="epochs", show=False, early=True)
    estimate = module.StopEstimate(1500, 40, "loss")
    for epoch in range(21):
        now[0] += 1.0
        row = {"val_loss": abs(epoch - 9) + 1.0}
        bar.advance(to=epoch + 1, last=estimate("gcn", epoch, row))
    assert bar.left() == pytest.approx(50 - 21)


def test_a_follower_sees_every_step_of_a_hidden_bar(clock):
    steps = []
    with module.following(steps.append), Bar("epochs", 3, unit="epochs", show=False) as bar:
        bar.advance("first")
        clock(4)
        bar.advance(total=4)
    with Bar("others", 1, unit="runs", show=False) as bar:
        bar.advance()
    assert [(step.title, step.done, step.total, step.note) for step in steps] == [
        ("epochs", 1, 3, "first"), ("epochs", 2, 4, ""),
    ]  # fmt: skip
    assert steps[1].left == pytest.approx(8)

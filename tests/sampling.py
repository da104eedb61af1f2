"""Ask a part of a long table in each run, and another part in the next.

Tables multiply: rows, dtypes, shapes, tilings, workers. All their cases take an hour, and most say what their
neighbours say. So a test that is marked `some(n)` runs for `n` of its parameters, one that takes the fixture
`some` draws from its loop, and Hypothesis's have a part of their examples. Which ones depends on the run's
seed, shown at the top. `--whole` asks everything, `--seed N` asks what another run has asked, and a case that
is named by its id is always run.

A run of all tests, for whoever has changed something and waits, asks a fourth of that (of Hypothesis's
examples a third), and of every other table that has more than `TABLE` cases, too; but all cases of one marked
`every`. And it asks one in `SLOW` of the tests that are marked `slow`, which take half a second or more: they
start daemons, an engine or a compiler, or fit a model. These are drawn as well. CI asks them all, as whoever
names files or folders does.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import hypothesis
import pytest

T = TypeVar("T")
Some = Callable[[Iterable[Any], int], list[Any]]
"""What the fixture `some` gives."""

_SEED_OF_MERGES = 2000
"""The seed where CI is set: a merge is judged by what it changes, and not by a fault of before that it
happens to draw. Everybody else's run draws anew."""
SLOW = 20
"""Of so many slow tests a run of everything asks one."""
TABLE = 6
"""So many cases of a table a run of everything asks at least, if there are as many."""
_PART = 8
_THIRD, _FOURTH = 3, 4
_asked = {"whole": False, "few": False}
"""What the command line asks for, for modules that want to know it as they are imported."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """The seed, and the wish for everything."""
    parser.addoption("--seed", type=int, help="draw the cases of the run with this seed")
    parser.addoption("--whole", action="store_true", help="run all cases of every table")


def pytest_configure(config: pytest.Config) -> None:
    """A new seed for each run."""
    config.addinivalue_line("markers", "some(n): run for n of the parameters, drawn with the run's seed")
    config.addinivalue_line("markers", "every: run for all parameters, of which each is a file or the like")
    config.addinivalue_line("markers", "whole: run with --whole, or by its id; too long otherwise")
    config.addinivalue_line("markers", "slow: takes half a second or more; a run of all tests asks a part")
    told = getattr(config, "workerinput", {})
    config.option.slow = "CI" in os.environ or config.args_source is pytest.Config.ArgsSource.ARGS
    if "seed" in told:
        config.option.seed, config.option.whole = told["seed"], told["whole"]
        config.option.slow = told["slow"]
    elif config.option.seed is None:
        config.option.seed = _SEED_OF_MERGES if os.environ.get("CI") else random.randrange(1 << 32)
    _asked.update(whole=_whole(config), few=_is_short(config))
    hypothesis.settings.register_profile(
        "part", deadline=None, print_blob=True, derandomize="CI" in os.environ, max_examples=part(100)
    )
    hypothesis.settings.load_profile("part")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """The processes of pytest-xdist draw what the first one draws."""
    option = node.config.option
    node.workerinput |= {"seed": option.seed, "whole": _whole(node.config), "slow": option.slow}


def pytest_report_header(config: pytest.Config) -> str:
    """How to ask the same again."""
    return "all cases" if _whole(config) else f"cases drawn with --seed {config.option.seed}"


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Iterator[None]:
    """Make no test of the parameters that are not drawn: there are four times as many."""
    yield
    config, calls = metafunc.config, metafunc._calls
    marker = next(metafunc.definition.iter_markers("some"), None)
    if marker is not None and not _whole(config):
        metafunc._calls = _drawn(config, metafunc.definition.nodeid, calls, _few(config, marker.args[0]))
    elif marker is None and _is_short(config) and not next(metafunc.definition.iter_markers("every"), None):
        most = max(TABLE, _few(config, len(calls)))
        metafunc._calls = _drawn(config, metafunc.definition.nodeid, calls, most)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what takes too long."""
    if _whole(config):
        return
    left = {item for item in items if item.get_closest_marker("whole") is not None}
    if not config.option.slow:
        slow = [item for item in items if item.get_closest_marker("slow") is not None]
        asked = _drawn(config, "slow", slow, -(-len(slow) // SLOW))
        left |= {item for item in slow if item not in asked}
    config.hook.pytest_deselected(items=[i for i in items if i in left])
    items[:] = [i for i in items if i not in left]


@pytest.fixture(autouse=True)
def same_draws(request: pytest.FixtureRequest) -> None:
    """What a test draws from `random` is the run's seed's, too."""
    random.seed(f"{request.config.option.seed} {request.node.nodeid}")


@pytest.fixture
def some(request: pytest.FixtureRequest) -> Some:
    """`some(cases, n)`: `n` of the cases in their order, or all of them."""

    def draw(cases: Iterable[T], n: int) -> list[T]:
        listed = list(cases)
        config = request.config
        return listed if _whole(config) else _drawn(config, request.node.nodeid, listed, _few(config, n))

    return draw


def part(n: int) -> int:
    """How many of `n` examples a run takes: all of them with `--whole`."""
    return n if _asked["whole"] else -(-n // (_PART * (_THIRD if _asked["few"] else 1)))


def examples(n: int) -> hypothesis.settings:
    """A part of `n` of Hypothesis's examples, which may be large."""
    return hypothesis.settings(max_examples=part(n), suppress_health_check=list(hypothesis.HealthCheck))


def _whole(config: pytest.Config) -> bool:
    return config.option.whole or any("[" in argument for argument in config.args)


def _is_short(config: pytest.Config) -> bool:
    """Whether a run asks a fourth of what others ask: one of everything, for somebody who waits."""
    return not _whole(config) and not config.option.slow


def _few(config: pytest.Config, n: int) -> int:
    """How many of `n` cases the run asks."""
    return -(-n // _FOURTH) if _is_short(config) else n


def _drawn(config: pytest.Config, name: str, cases: list[T], n: int) -> list[T]:
    chosen = random.Random(f"{config.option.seed} {name}").sample(range(len(cases)), min(n, len(cases)))
    return [cases[i] for i in sorted(chosen)]

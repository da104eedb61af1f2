"""The interpreter's buffers: few, and none overwritten while somebody may still read it."""

from __future__ import annotations

import numpy as np
import pytest

import spartan_ng as sp
from spartan_ng import session
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from spartan_ng.graph import build
from spartan_ng.kernels.body import Body
from spartan_ng.plan.stages import Fused
from tests.test_programs import running_on

RANDOM = np.random.default_rng(0)
A, B = RANDOM.random((40, 40)), RANDOM.random((40, 40))


def times(x, y):
    return build.map_("multiply", x, y)


def plus(x, y):
    return build.map_("add", x, y)


def chain(x, y):
    return plus(times(plus(times(x, y), y), x), y)


def both(x, y):
    p, q = plus(x, y), times(x, y)
    return times(plus(p, q), p)


def turned(x, y):
    p = plus(x, y)
    return times(p, build.transpose(p, (1, 0)))


def choice(x, y):
    p, q = plus(x, y), times(x, y)
    return build.map_("where", build.map_("greater", p, q), p, q)


WANTED = {
    chain: (1, lambda x, y: (x * y + y) * x + y),
    both: (2, lambda x, y: (x + y + x * y) * (x + y)),
    turned: (2, lambda x, y: (x + y) * (x + y).T),
    choice: (4, lambda x, y: np.where(x + y > x * y, x + y, x * y)),
}


@pytest.mark.parametrize("text", WANTED, ids=lambda text: text.__name__)
def test_few_buffers_and_right_values(text):
    most, numpys = WANTED[text]
    with running_on(EmbeddedBackend(2)), config.override(kernels="interpret", small_bytes=0):
        node = text(build.constant(A), build.constant(B))
        stages = session.current().plan([node])[0].plan.stages
        assert max(Body(s).nbuffers for s in stages if isinstance(s, Fused)) <= most
        found = session.evaluate([node])[0].value
    np.testing.assert_array_equal(found, numpys(A, B))


@pytest.mark.parametrize("function", [lambda a, b: a + b, lambda a, b: np.minimum(a, b), lambda a, b: a])
@pytest.mark.parametrize(("shape", "axis"), [((1, 3000, 300), 0), ((4000, 1, 200), 1), ((3000, 300, 1), 2)])
def test_folds_of_one_element_by_users_own_their_states(shape, axis, function):
    """Where nothing is combined, what a user's fold gives is a part of the block's memory."""
    x = RANDOM.random(shape)
    with running_on(EmbeddedBackend(2)), config.override(small_bytes=0):
        found = sp.fold(function, sp.asarray(x) * 2 + 1, axis=axis)
        np.testing.assert_array_equal(found, (x * 2 + 1).sum(axis))


def test_a_user_may_give_an_operand_back():
    x = np.stack([RANDOM.random((3000, 300))] * 2)
    with running_on(EmbeddedBackend(2)), config.override(small_bytes=0):
        np.testing.assert_array_equal(sp.fold(lambda a, b: b, sp.asarray(x) * 2 + 1, axis=0), x[0] * 2 + 1)

"""Functions of lines as operands of products: what they cost depends on the lines, along whichever axis."""

import numpy
import pytest

import spartan_ng as np
from benchmarks.simulated import SimulatedBackend
from spartan_ng.costs import Profile
from spartan_ng.costs.operations import of_node
from spartan_ng.graph.node import topological
from spartan_ng.optimizer.cuboid.sizes import operations
from tests.test_programs import running_on

OF_LINES = {
    "sort": lambda xp, x, axis: xp.sort(x, axis=axis),
    "argsort": lambda xp, x, axis: xp.argsort(x, axis=axis),
    "partition": lambda xp, x, axis: xp.sort(xp.partition(x, 1, axis=axis), axis=axis),
    "median": lambda xp, x, axis: xp.median(x, axis=axis, keepdims=True) + x,
    "fft": lambda xp, x, axis: xp.fft.fft(x, axis=axis).real,
    "cumsum": lambda xp, x, axis: xp.cumsum(x, axis=axis),
}
VALUE = numpy.random.default_rng(0).random((24, 24))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", OF_LINES)
def test_products_of_lines(name, axis):
    of_lines = OF_LINES[name]
    backend = SimulatedBackend(3, Profile(workers=3, message_ns=0, flops_s=10**6))
    with running_on(backend), np.config.override(small_bytes=0):
        x = np.asarray(VALUE) * 1
        made, expected = of_lines(np, x, axis), of_lines(numpy, VALUE, axis)
        numpy.testing.assert_allclose(made @ x, expected @ VALUE)
        numpy.testing.assert_allclose(x @ made, VALUE @ expected)
        numpy.testing.assert_allclose((made @ made.T) * 2, expected @ expected.T * 2)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", [(24, 3), (3, 24)])
def test_all_cells_cost_what_the_node_costs(shape, axis):
    with np.config.override(small_bytes=0):
        made = np.sort(np.random.default_rng(0).random(shape) * 2, axis=axis)
        (node,) = (n for n in topological([made._node()]) if n.fn == "along_axis")
    assert operations(node, node.size, {}) == of_node(node)
    assert operations(node, node.size // 2, {}) == of_node(node) // 2

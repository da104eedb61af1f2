"""Of two zeros that differ in sign, compiled kernels give the one that NumPy gives."""

import numpy
import pytest

import spartan_ng as np

ODD = (0.0, -0.0, 1.0, -1.0, numpy.inf, -numpy.inf, numpy.nan)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(
    "name",
    ["minimum", "maximum", "add", "subtract", "multiply", "divide", "copysign", "floor_divide", "remainder"],
)
def test_signs_of_zero_are_numpys(name, dtype):
    x, y = (part.ravel() for part in numpy.meshgrid(numpy.array(ODD, dtype), numpy.array(ODD, dtype)))

    def program(m):
        a, b = m.array(x), m.array(y)
        return getattr(m, name)(m.negative(a), m.negative(b))

    with numpy.errstate(all="ignore"), np.config.override(small_bytes=0, kernels="compile"):
        found, wanted = numpy.asarray(program(np)), program(numpy)
    numpy.testing.assert_array_equal(found, wanted)
    there = ~numpy.isnan(wanted)
    numpy.testing.assert_array_equal(numpy.signbit(found[there]), numpy.signbit(wanted[there]))

"""Classes derived from `np.ndarray`, and objects that make results their own: the same program in both."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import spartan_ng as np


def derived(module: Any) -> Any:
    class Named(module.ndarray):  # type: ignore[misc]
        def __new__(cls, values, name="none"):
            made = module.asarray(values).view(cls)
            made.name = name
            return made

        def __array_finalize__(self, other):
            self.name = getattr(other, "name", "new")

        def doubled(self):
            return super().__mul__(2)

    return Named


def wrapping(module, priority=0.0):
    class Wrapping:
        __array_priority__ = priority

        def __array__(self, dtype=None, copy=None):
            return module.arange(3.0)

        def __array_wrap__(self, array, context=None, return_scalar=False):
            return (priority, array.tolist(), context and context[0].__name__, return_scalar)

    return Wrapping()


PROGRAMS = {
    "operators": lambda m, c: [c([1, 2.0], "a") + 1, 1 - c([1, 2.0], "b"), c([3], "c") @ c([4], "d")],
    "beside arrays": lambda m, c: [m.arange(3) * c([1, 2, 3], "a"), c([1, 2, 3], "a") * m.arange(3)],
    "methods": lambda m, c: [c([[1, 2], [3, 4]], "a").sum(0), c([1, 2], "a").doubled(), c([2, 1], "s")[::-1]],
    "functions": lambda m, c: [
        m.exp(c([0.0], "a")),
        m.sort(c([2, 1], "b")),
        m.concatenate([c([1]), m.ones(2)]),
    ],
    "folds": lambda m, c: [m.add.reduce(c([[1, 2], [3, 4]], "r")), m.maximum.accumulate(c([1, 3, 2], "m"))],
    "out": lambda m, c: [m.add(m.ones(2), 1, out=c([0.0, 0.0], "o"))],
    "shapes": lambda m, c: [c([1, 2, 3, 4], "a").reshape(2, 2), m.zeros((2, 2)).view(c)],
    "constructors": lambda m, c: [c.__new__(c, [1]), m.ones_like(c([1, 2], "l"))],
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_derived_classes(program):
    for ours, theirs in zip(*(PROGRAMS[program](m, derived(m)) for m in (np, numpy)), strict=True):
        assert type(ours).__name__ == type(theirs).__name__
        assert getattr(ours, "name", None) == getattr(theirs, "name", None)
        assert str(ours) == str(theirs)
        assert ours.dtype == theirs.dtype


@pytest.mark.parametrize("requirements", [None, ["E"], ["ENSUREARRAY", "W"], ["E", "F", "O"], ["C"]])
@pytest.mark.parametrize("dtype", [None, "f4"])
def test_instances_are_kept_or_not_as_required(requirements, dtype):
    kinds = []
    for module in (np, numpy):
        instance = derived(module)([[1, 2], [3, 4]])
        for given in (instance, instance.view(module.ndarray)):
            found = module.require(given, dtype, requirements)
            kinds.append((type(found).__name__, found.dtype, found.flags.fnc, found.tolist()))
    assert kinds[:2] == kinds[2:]


def test_instances_are_arrays():
    named = derived(np)
    assert isinstance(named([1]), np.ndarray)
    assert issubclass(named, np.ndarray)
    assert isinstance(numpy.ones(2), np.ndarray)
    assert not isinstance(2.0, np.ndarray)
    assert not isinstance([1], np.ndarray)


@pytest.mark.parametrize(
    "make", [lambda: np.arange(4.0), lambda: np.arange(4.0)[1:], lambda: np.ones(4).cumsum()]
)
def test_views_of_other_classes_share_the_memory(make):
    for small in (np.config.small_bytes, 0):
        with np.config.override(small_bytes=small):
            array = make()
            array.view(derived(np))[0] = 9
            assert array[0] == 9
            array[1] = 8
            assert array.view(derived(np))[1] == 8


@pytest.mark.parametrize("arguments", [{}, {"dtype": "i4"}, {"type": "array"}, {"dtype": "array"}])
def test_views_of_derived_classes(arguments):
    """`ndarray` names NumPy's class where an instance is asked for a view."""
    seen = []
    for module in (np, numpy):
        given = {k: module.ndarray if v == "array" else v for k, v in arguments.items()}
        instance = derived(module)([1, 2, 3], "a")
        view = instance.view(**given)
        view[0] = 7
        seen.append((type(view).__name__, isinstance(view, module.ndarray), view.tolist(), instance.tolist()))
    assert seen[0] == seen[1]


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize("key", [slice(1, 3), [0, 2], (slice(0, 2),)])
@pytest.mark.parametrize("small", [np.config.small_bytes, 0])
def test_elements_of_instances_are_assigned(key, small):
    with np.config.override(small_bytes=small):
        for value in (np.ma.masked_equal([5, 6], 6), np.matrix([[5, 6]]), derived(np)([5, 6])):
            ours, theirs = np.arange(4.0) * 2, numpy.arange(4.0) * 2
            ours[key] = value
            theirs[key] = value
            assert ours.tolist() == theirs.tolist()


def test_attributes_of_derived_classes():
    masked = np.ma.masked_equal([[1, 2, 3]], 2)
    assert (np.shape(masked), np.ndim(masked), np.size(masked), np.size(masked, 1)) == ((1, 3), 2, 3, 3)
    a = np.zeros(3)
    a.flat = masked
    assert a.tolist() == [1, 2, 3]


@pytest.mark.parametrize("make", [lambda m: m.random.default_rng(5), lambda m: m.random.RandomState(5)])
def test_instances_are_shuffled(make):
    def told(module):
        instance = derived(module)([1, 2, 3, 4], "a")
        mixed = make(module).permutation(instance)
        make(module).shuffle(instance)
        copied = module.copy(instance, subok=True)
        return [(type(a).__name__, getattr(a, "name", None), a.tolist()) for a in (mixed, instance, copied)]

    assert told(np) == told(numpy)
    masked = np.ma.masked_equal([1, 2], 2)
    assert not isinstance(np.copy(masked), np.ma.MaskedArray)
    assert isinstance(np.copy(masked, subok=True), np.ma.MaskedArray)


CALLS = {
    "unary": lambda m, a, b: m.exp(a),
    "two": lambda m, a, b: m.minimum(a, b),
    "with an array": lambda m, a, b: m.add(m.ones(3), a),
    "with a number": lambda m, a, b: m.subtract(1.0, a),
    "fold": lambda m, a, b: m.add.reduce(a),
    "scan": lambda m, a, b: m.add.accumulate(a),
    "two results": lambda m, a, b: m.modf(a),
    "keywords": lambda m, a, b: m.add(a, 1, dtype="f4"),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("second", [-1.0, 0.0, 2.0])
def test_results_are_wrapped(call, second):
    ours, theirs = (CALLS[call](m, wrapping(m), wrapping(m, second)) for m in (np, numpy))
    assert ours == theirs


def test_universal_functions_are_known_by_numpys_name():
    assert np.add == numpy.add
    names: dict[Any, str] = {np.add: "sum"}
    assert names[numpy.add] == "sum"
    assert np.add != numpy.subtract
    assert np.add != np.subtract


def test_libraries_say_what_functions_of_their_arrays_give():
    class Duck:
        known = {np.sum: "ours", numpy.mean: "theirs"}

        def __array_function__(self, function, types, args, keywords):
            known = self.known.get(function, NotImplemented)
            return known if known is NotImplemented else (known, len(args), [type(a) for a in args[1:]])

    assert np.sum(Duck()) == ("ours", 1, [])
    assert np.mean(Duck()) == ("theirs", 1, [])
    assert np.sum(np.ones(2), where=Duck())[0] == "ours"
    with pytest.raises(TypeError, match="no implementation found"):
        np.concatenate([np.ones(2), Duck()])
    with pytest.raises(TypeError, match="no implementation found"):
        np.reshape(Duck(), 3)
    with pytest.raises(TypeError, match="like"):
        np.ones(2, like=3)


def test_numpys_generators_are_instances():
    for name in ("PCG64", "MT19937", "Philox", "SFC64", "PCG64DXSM", "SeedSequence"):
        ours, theirs = getattr(np.random, name), getattr(numpy.random, name)
        assert isinstance(ours(1), ours)
        assert isinstance(ours(1), theirs)
        assert isinstance(theirs(1), ours)
        assert not isinstance(theirs(1), np.random.Generator)
    assert isinstance(np.random.default_rng(3).bit_generator, np.random.PCG64)
    assert not isinstance(np.random.default_rng(3).bit_generator, np.random.MT19937)
    assert isinstance(numpy.random.default_rng(3), np.random.Generator)
    assert isinstance(numpy.random.RandomState(3), np.random.RandomState)
    assert type(np.random.default_rng(numpy.random.default_rng(3))) is np.random.Generator


@pytest.mark.parametrize("make", [lambda m: m.random.default_rng(5), lambda m: m.random.RandomState(5)])
@pytest.mark.parametrize("a", [4, [1, 2, 3], ["a", "b"], [None, 2.5], 3.0, [[1, 2]], [], -1])
@pytest.mark.parametrize("size", [None, (), 3, (2, 2), (0,)])
def test_choices(make, a, size):
    """Of ranges and lists, as NumPy chooses, or its error."""
    got = []
    for module in (np, numpy):
        try:
            got.append(make(module).choice(a, size))
        except (ValueError, TypeError, IndexError) as error:
            got.append([k for k in (ValueError, TypeError, IndexError) if isinstance(error, k)])
    ours, theirs = np.compute(*got)
    assert str(ours) == str(theirs)
    assert getattr(ours, "dtype", None) == getattr(theirs, "dtype", None)

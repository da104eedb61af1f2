"""One example call of every public function of NumPy's other namespaces, as `calls` has them of its own."""

from __future__ import annotations

from typing import Any

from tests.numpy_parity.operands import Call, changed

LINALG: dict[str, Call] = {
    "cholesky": lambda np, o: np.linalg.cholesky(o.s),
    "cond": lambda np, o: np.linalg.cond(o.s),
    "cross": lambda np, o: np.linalg.cross(o.v[:4095].reshape(-1, 3), o.w[:4095].reshape(-1, 3)),
    "det": lambda np, o: np.linalg.det(o.stack),
    "diagonal": lambda np, o: np.linalg.diagonal(o.cube) + 0,
    "eig": lambda np, o: np.abs(np.linalg.eig(o.stack)[0]).sum(),
    "eigh": lambda np, o: np.linalg.eigh(o.s)[0],
    "eigvals": lambda np, o: np.abs(np.linalg.eigvals(o.stack)).sum(),
    "eigvalsh": lambda np, o: np.linalg.eigvalsh(o.s),
    "inv": lambda np, o: np.linalg.inv(o.s),
    "lstsq": lambda np, o: np.linalg.lstsq(o.v.reshape(-1, 4), o.w[:1024])[0],
    "matmul": lambda np, o: np.linalg.matmul(o.a, o.s),
    "matrix_norm": lambda np, o: np.linalg.matrix_norm(o.cube),
    "matrix_power": lambda np, o: (np.linalg.matrix_power(o.a, 3), np.linalg.matrix_power(o.s, -2)),
    "matrix_rank": lambda np, o: np.linalg.matrix_rank(o.s),
    "matrix_transpose": lambda np, o: np.linalg.matrix_transpose(o.cube) + 0,
    "multi_dot": lambda np, o: np.linalg.multi_dot([o.a, o.s, o.a]),
    "norm": lambda np, o: np.linalg.norm(o.v),
    "outer": lambda np, o: np.linalg.outer(o.v[:70], o.w[:80]),
    "pinv": lambda np, o: np.linalg.pinv(o.v.reshape(-1, 4)),
    "qr": lambda np, o: np.linalg.qr(o.v.reshape(-1, 4)),
    "slogdet": lambda np, o: np.linalg.slogdet(o.stack),
    "solve": lambda np, o: np.linalg.solve(o.s, o.a),
    "svd": lambda np, o: np.linalg.svd(o.stack)[1],
    "svdvals": lambda np, o: np.linalg.svdvals(o.s),
    "tensordot": lambda np, o: np.linalg.tensordot(o.a, o.s, axes=1),
    "tensorinv": lambda np, o: np.linalg.tensorinv(o.s.reshape(8, 8, 64)),
    "tensorsolve": lambda np, o: np.linalg.tensorsolve(o.s.reshape(8, 8, 64), o.a[0].reshape(8, 8)),
    "trace": lambda np, o: np.linalg.trace(o.cube),
    "vecdot": lambda np, o: np.linalg.vecdot(o.a, o.s),
    "vector_norm": lambda np, o: np.linalg.vector_norm(o.a, axis=0),
}
"""Functions of `numpy.linalg`."""


def _named(space: str, name: str, *given: Any, **keywords: Any) -> Call:
    """A call of one of several functions that take the same arguments; operands go by their names."""

    def call(np: Any, o: Any) -> Any:
        plain = [getattr(o, g[1:]) if isinstance(g, str) and g.startswith("$") else g for g in given]
        return getattr(getattr(np, space), name)(*plain, **keywords)

    return call


FFT: dict[str, Call] = {
    **{n: _named("fft", n, "$a", axis=0) for n in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")},
    **{n: _named("fft", n, "$a") for n in ("fft2", "ifft2", "rfft2", "irfft2")},
    **{n: _named("fft", n, "$a") for n in ("fftn", "ifftn", "rfftn", "irfftn")},
    "fftshift": lambda np, o: np.fft.fftshift(o.a),
    "ifftshift": lambda np, o: np.fft.ifftshift(o.a),
    "fftfreq": lambda np, o: np.fft.fftfreq(5000, 0.1),
    "rfftfreq": lambda np, o: np.fft.rfftfreq(10001, 0.1),
}
"""Functions of `numpy.fft`."""

RANDOM: dict[str, Call] = {
    name: _named("random", name, *given, size=5000)
    for name, given in {
        "beta": (2.0, 3.0),
        "binomial": (10, 0.3),
        "chisquare": (3.0,),
        "dirichlet": ([1.0, 2.0, 3.0],),
        "exponential": (2.0,),
        "f": (2.0, 3.0),
        "gamma": (2.0, 3.0),
        "geometric": (0.3,),
        "gumbel": (),
        "hypergeometric": (9, 8, 7),
        "laplace": (),
        "logistic": (),
        "lognormal": (),
        "logseries": (0.4,),
        "multivariate_normal": ([0.0, 1.0], [[1.0, 0.5], [0.5, 2.0]]),
        "negative_binomial": (3, 0.4),
        "noncentral_chisquare": (3.0, 2.0),
        "noncentral_f": (3.0, 4.0, 2.0),
        "normal": (1.0, 2.0),
        "pareto": (3.0,),
        "poisson": (4.0,),
        "power": (2.0,),
        "randint": (0, 50),
        "random": (),
        "random_integers": (0, 50),
        "random_sample": (),
        "ranf": (),
        "rayleigh": (),
        "sample": (),
        "standard_cauchy": (),
        "standard_exponential": (),
        "standard_gamma": (2.0,),
        "standard_normal": (),
        "standard_t": (3.0,),
        "triangular": (0.0, 1.0, 3.0),
        "uniform": (-1.0, 1.0),
        "vonmises": (0.0, 2.0),
        "wald": (1.0, 2.0),
        "weibull": (2.0,),
        "zipf": (3.0,),
    }.items()
}
"""Functions of `numpy.random` that draw, unseeded."""
RANDOM |= {
    "rand": lambda np, o: np.random.rand(70, 80),
    "randn": lambda np, o: np.random.randn(70, 80),
    "choice": lambda np, o: np.random.choice(o.v, 5000),
    "permutation": lambda np, o: np.random.permutation(o.v),
    "shuffle": lambda np, o: changed(o.v, np.random.shuffle),
}

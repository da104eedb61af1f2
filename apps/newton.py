"""Newton's method in a trust region, its steps by conjugate gradients: for objectives over many points.

Lin, Weng and Keerthi (2008), on Steihaug (1983): what SystemML's MLogreg and GLM run (Fusion plans, Table 2).
The parameters are a small array on the driver; the objective sees the points by sums over them, and a
product with its second derivatives is one pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from spartan_ng.apps.checks import require_finite
from spartan_ng.apps.convergence import Iterations
from spartan_ng.apps.design import Design

_SHRINK, _GROW = 0.25, 4.0


class Objective(Protocol):
    """A convex function of an array."""

    @property
    def design(self) -> Design:
        """The points, and whether there is an intercept."""

    def at(self, point: Any) -> tuple[float, Any, Any]:
        """Value and gradient at a point, and what `curved` needs to know of the point."""

    def curved(self, state: Any, direction: Any) -> Any:
        """The product of the second derivatives with a direction."""


@dataclass(frozen=True, slots=True)
class Minimum:
    """What `minimize` finds: a point, its value, and how the outer iterations went."""

    point: Any
    value: float
    loop: Iterations


def minimize(
    name: str, objective: Objective, start: Any, *, max_iter: int, max_inner: int, tol: float
) -> Minimum:
    """Follow Newton's steps, none longer than the region in which they are trusted.

    Parameters
    ----------
    name : of the algorithm, for errors
    objective : what to minimize
    start : where to begin, a NumPy array
    max_iter, max_inner : upper bounds of the Newton steps, and of the products for each
    tol : stop when the gradient's norm is at most this share of the first one's

    Raises
    ------
    ValueError : the points are not finite

    Warns
    -----
    ConvergenceWarning : `max_iter` ended it, and tol is not 0
    """
    point = start
    value, gradient, state = objective.at(point)
    require_finite(name, objective.design, value, gradient)
    first = radius = _norm(gradient)
    loop = Iterations(name, max_iter, tol)
    for _ in loop:
        step, promised = _inner(objective, state, gradient, radius, max_inner)
        if promised <= 1e-16 * abs(value):
            loop.converged = True
            continue
        new_value, new_gradient, new_state = objective.at(point + step)
        trust = (value - new_value) / promised
        if trust < 0.25:
            radius = _SHRINK * min(radius, _norm(step))
        elif trust > 0.75:
            radius = max(radius, _GROW * _norm(step))
        if trust > 1e-4:
            point, value, gradient, state = point + step, new_value, new_gradient, new_state
        loop.saw(value)
        loop.converged = _norm(gradient) <= tol * first
    return Minimum(point, value, loop)


def _inner(
    objective: Objective, state: Any, gradient: Any, radius: float, max_inner: int
) -> tuple[Any, float]:
    """A step that minimizes the quadratic model within the radius, and by how much it lowers the model."""
    step, residual = 0 * gradient, -gradient
    direction, square = residual, _dot(residual, residual)
    enough = (0.1 * _norm(gradient)) ** 2
    for _ in range(max_inner):
        if square <= enough:
            break
        curved = objective.curved(state, direction)
        bend = _dot(direction, curved)
        length = square / bend if bend > 0 else float("inf")
        if bend <= 0 or _norm(step + length * direction) > radius:
            length = _to_border(step, direction, radius)
            step, residual = step + length * direction, residual - length * curved
            break
        step, residual = step + length * direction, residual - length * curved
        before, square = square, _dot(residual, residual)
        direction = residual + square / before * direction
    return step, 0.5 * (_dot(step, residual) - _dot(step, gradient))


def _to_border(step: Any, direction: Any, radius: float) -> float:
    """The t >= 0 at which step + t * direction leaves the ball."""
    a, b = _dot(direction, direction), _dot(step, direction)
    c = radius * radius - _dot(step, step)
    return float(c / (b + (b * b + a * c) ** 0.5))


def _dot(a: Any, b: Any) -> float:
    return float((a * b).sum())


def _norm(a: Any) -> float:
    return float(_dot(a, a) ** 0.5)

"""The rules of algebra, one row each, and the pass that applies them."""

from __future__ import annotations

from collections.abc import Sequence

from spartan_ng.graph.node import Node, Op, topological
from spartan_ng.optimizer.rewrite.algebra.chains import order_of_products, order_of_sparse_products
from spartan_ng.optimizer.rewrite.algebra.indicators import indicator_product, indicator_sum, lookup_product
from spartan_ng.optimizer.rewrite.algebra.scaling import product_of_scaled
from spartan_ng.optimizer.rewrite.algebra.sums import product_without_matrix, sum_of_product
from spartan_ng.optimizer.rewrite.algebra.views import (
    diagonal_of_product,
    lookup_of_product,
    selection_of_product,
    slice_of_product,
    transpose_of_product,
)
from spartan_ng.optimizer.rewrite.rule import Rule, rewritten
from spartan_ng.optimizer.rewrite.slices import SLICE_OF_MAP

_NUMBERS = "integers, and floats of 32 bits or more"

RULES = (
    SLICE_OF_MAP,
    Rule(
        "slice of a product",
        "(A @ B)[r, c]",
        "A[r] @ B[:, c]",
        "any dtype; fewer elements are left; of a CSR operand rows alone",
        Op.SLICE,
        slice_of_product,
    ),
    Rule(
        "diagonal of a product",
        "diagonal(A @ B)",
        "(A * B.T).sum(1)",
        "any dtype; dense operands",
        Op.SLICE,
        diagonal_of_product,
    ),
    Rule(
        "transpose of a product",
        "(A @ B).T",
        "B.T @ A.T",
        "any",
        Op.TRANSPOSE,
        transpose_of_product,
    ),
    Rule(
        "lookup in a product",
        "(A @ B)[i]",
        "A[i] @ B",
        "any dtype; dense operands; fewer indices than lines",
        Op.JOIN_UPDATE,
        lookup_of_product,
    ),
    Rule(
        "mask of a product",
        "(A @ B)[m]",
        "A[m] @ B",
        "any dtype; dense operands; a mask of rows",
        Op.FILTER,
        selection_of_product,
    ),
    Rule(
        "sum of a product",
        "(A @ B).sum(0)",
        "A.sum(0) @ B",
        f"{_NUMBERS}, summed in their own dtype; dense operands; costs a fifth less",
        Op.FOLD,
        sum_of_product,
    ),
    Rule(
        "product without a matrix",
        "einsum('ij,ij', A, B)",
        "(A * B).sum()",
        f"{_NUMBERS}; dense operands; both have the same axes",
        Op.JOIN_UPDATE,
        product_without_matrix,
    ),
    Rule(
        "product with an indicator",
        "(labels[:, None] == arange(k)).T @ X",
        "sums of X by label",
        "floats of 32 or 64 bits; integer labels; four rows a group",
        Op.JOIN_UPDATE,
        indicator_product,
    ),
    Rule(
        "sum of an indicator",
        "(labels[:, None] == arange(k)).sum(0)",
        "bincount(labels)",
        "real numbers; integer labels; beside products",
        Op.FOLD,
        indicator_sum,
    ),
    Rule(
        "product with looked up rows",
        "E[labels].T @ X",
        "E.T @ (sums of X by label)",
        "floats of 32 or 64 bits, of one dtype; four rows a group",
        Op.JOIN_UPDATE,
        lookup_product,
    ),
    Rule(
        "product of what is scaled",
        "(s * A) @ B",
        "s * (A @ B)",
        "integers, and double precision, of one dtype; dense operands; "
        "a result of at most twice the elements of A",
        Op.JOIN_UPDATE,
        product_of_scaled,
    ),
    Rule(
        "order of products",
        "A @ B @ v",
        "A @ (B @ v)",
        f"{_NUMBERS}, of one dtype; dense operands; costs a fifth less",
        Op.JOIN_UPDATE,
        order_of_products,
    ),
    Rule(
        "order of sparse products",
        "S @ T @ v",
        "S @ (T @ v)",
        f"{_NUMBERS}, of one dtype; CSR operands, and a dense one; costs a fifth less",
        Op.JOIN_UPDATE,
        order_of_sparse_products,
    ),
)
"""Every rule, in the order in which those of one operator are tried."""


def algebra(roots: Sequence[Node]) -> list[Node]:
    """Apply every rule until none fits; graphs without products keep as they are."""
    if not any(n.fn == "contract" for n in topological(roots)):
        return list(roots)
    return rewritten(RULES, roots)

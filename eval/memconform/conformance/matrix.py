"""Expands a matrix into the combinations of its values. Pure."""

import itertools
from collections.abc import Iterator
from typing import Any

from memconform.contract.wire import JsonValue


class BadMatrixError(ValueError):
    """A matrix is not a mapping of names to values."""


def combinations(matrix: JsonValue) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each combination: its label, and a value for each dimension.

    A dimension is a list of values, or a mapping of labels to values. An empty matrix has one
    combination, without a label.

    Raises:
        BadMatrixError: if the matrix is not a mapping, or a dimension has no values.
    """
    if not isinstance(matrix, dict):
        raise BadMatrixError("a matrix must be a mapping")
    dimensions = []
    for dimension, values in matrix.items():
        if isinstance(values, list) and values:
            dimensions.append([(dimension, str(value), value) for value in values])
        elif isinstance(values, dict) and values:
            dimensions.append([(dimension, str(label), value) for label, value in values.items()])
        else:
            raise BadMatrixError(f"{dimension} has no values")
    for combination in itertools.product(*dimensions):
        label = ",".join(label for _, label, _ in combination)
        yield label, {dimension: value for dimension, _, value in combination}

"""Combinations of the values that a matrix has. Pure."""

import itertools
from collections.abc import Iterator
from typing import Any

from memconform.contract.wire import JsonValue


class BadMatrixError(ValueError):
    pass


def combinations(matrix: JsonValue) -> Iterator[tuple[str, dict[str, Any]]]:
    """A label, and a value for each dimension; one, without a label, where there is no matrix.

    A dimension is a list of values, or a mapping of labels to values.

    Raises:
        BadMatrixError: for what is none.
    """
    if not isinstance(matrix, dict):
        raise BadMatrixError("a mapping is wanted")
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

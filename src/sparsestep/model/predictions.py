"""Predictions for the rows of any source, block by block, from nothing but the columns kept."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sparsestep.errors import InputError, MissingValueError
from sparsestep.inference.notes import FarRows
from sparsestep.model.document import Document, parsed
from sparsestep.sources.one_hot import columns_behind, feature_blocks
from sparsestep.sources.rows import Rows, Where, in_row, numbers
from sparsestep.words import repeated


class Predictions:
    """Blocks of predictions, and of columns that are carried along.

    Parameters
    ----------
    rows : Rows
        An open source. Only the columns that the model kept, and those to carry along, are read.
    document : Document
        The model.
    carried : sequence of str
        Columns to carry along as they are.
    missing_as_null : bool
        Whether a missing value, or a category that the model does not know, gives a missing
        prediction instead of an error.

    Attributes
    ----------
    far : FarRows
        Counts the rows far outside those fitted, among the blocks so far.
    missing : int
        Rows with a missing prediction, among the blocks so far.
    """

    def __init__(
        self, rows: Rows, document: Document, carried: Sequence[str], missing_as_null: bool
    ) -> None:
        model = parsed(document)
        kept = sorted({j for target in model.targets for j in target.kept})
        self._features = [model.question.features[j] for j in kept]
        texts = {each.column: (each.categories, each.features) for each in model.question.one_hot}
        self._column_of = columns_behind(texts)
        self._coef = np.zeros((len(kept), len(model.targets)))
        for t, target in enumerate(model.targets):
            self._coef[np.searchsorted(kept, target.kept), t] = target.coef
        self._intercept = np.array([target.intercept for target in model.targets])
        columns = [model.data.mean, model.data.deviation, model.data.reach]
        mean, deviation, reach = np.array(columns, dtype=np.float64)[:, kept]
        self.far, self.missing = FarRows(mean, deviation, reach, self._features), 0
        outputs = ["prediction"]
        if len(model.targets) > 1:
            outputs = [f"prediction of {target.name}" for target in model.targets]
        self._carried, self._names = carried, [*carried, *outputs]
        if (name := repeated(self._names)) is not None:
            raise ValueError(f"The predictions would have two columns {name!r}; leave one out.")
        self._missing_as_null = missing_as_null
        self._blocks = feature_blocks(rows, self._features, texts, carried, missing_as_null)

    def __iter__(self) -> Iterator[Any]:
        for where, columns, features in self._blocks:
            n_rows = len(next(iter(columns.values())))
            X = np.empty((n_rows, len(self._features)), order="F")
            for j, feature in enumerate(self._features):
                X[:, j] = numbers(features[feature])
            carried = [_plain(columns[name]) for name in self._carried]
            yield pa.table([*carried, *self._predicted(X, where)], names=self._names)

    def _predicted(self, X: NDArray[np.float64], where: Where) -> list[Any]:
        """The predictions of a block, one array for each target."""
        bad = np.isinf(X) if self._missing_as_null else ~np.isfinite(X)
        if bad.any():
            raise self._explained(X, bad, where)
        missing = np.isnan(X).any(axis=1)
        self.missing += int(np.count_nonzero(missing))
        self.far.add(X)
        with np.errstate(over="ignore", invalid="ignore"):
            predicted = X @ self._coef + self._intercept
        too_large = ~missing & ~np.isfinite(predicted).all(axis=1)
        if too_large.any():
            row = in_row(*where(int(too_large.argmax())))
            raise InputError("The prediction is too large for a double", row, "rescale the row")
        return [pa.array(column, from_pandas=True) for column in predicted.T]

    def _explained(
        self, X: NDArray[np.float64], bad: NDArray[np.bool_], where: Where
    ) -> InputError:
        """The error for the first bad value, with its row."""
        row, j = (int(index) for index in np.argwhere(bad)[0])
        missing = bool(np.isnan(X[row, j]))
        what = "a missing value" if missing else f"the value {X[row, j]}"
        column = self._column_of.get(self._features[j], self._features[j])
        place = f"{in_row(*where(row))}, for which there is no prediction"
        return (MissingValueError if missing else InputError)(
            f"Column {column!r} has {what}", place
        )


def _plain(column: Any) -> Any:
    """A column without a dictionary, of which each block may have its own."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column

"""Errors and warnings keep their fields and their sentence when they travel between processes."""

import pickle

import pytest

from sparsestep import errors

EACH = [
    errors.InputError("Weight 'w' is -1.0", "in row 3", "weights must not be negative"),
    errors.MissingValueError("Column 'x' has a missing value", "in row 3", "fill it in"),
    errors.UnknownCategoryError("Column 'city' holds 'Paris'", "in row 7"),
    errors.NotNumbersError("x", "a.csv", "'1,5' in row 0", "", decimal=True),
    errors.OutOfRangeError("The values of {name} are too large", "y", is_target=True),
    errors.ModelSizeError(9, "is more than the 5 columns"),
    errors.ModelSizeError(3, "variables was found; the nearest has 2", 2),
    errors.MomentsFileError("a.npz is damaged."),
    errors.ModelFileError("a.json is damaged."),
    errors.LostDigitsWarning(1e9, 1e-3, "leave some out."),
    errors.FarRowsWarning("2 of 9 rows lie far outside.", 2),
    errors.DroppedRowsWarning(2, 9, {"x": 2}),
    errors.RowNamesWarning(["id"]),
]


@pytest.mark.parametrize("error", EACH, ids=lambda error: type(error).__name__)
def test_errors_travel(error):
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is type(error)
    assert (str(back), vars(back)) == (str(error), vars(error))
    assert str(error).endswith(".")

import os

import pytest
from hypothesis import settings

from source_data import make_table

# The same examples on every run and every machine; `make exactness` looks further afield.
settings.register_profile("ci", max_examples=100, derandomize=True, deadline=None)
settings.register_profile("long", max_examples=2000, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(scope="session")
def table():
    """1000 rows with columns of every kind of number."""
    return make_table()

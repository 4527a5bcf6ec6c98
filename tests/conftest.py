import os

from hypothesis import settings

# The same examples on every run and every machine; `make exactness` looks further afield.
settings.register_profile("ci", max_examples=100, derandomize=True, deadline=None)
settings.register_profile("long", max_examples=2000, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

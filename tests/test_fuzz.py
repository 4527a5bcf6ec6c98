"""Hostile input by chance: a short round of each target in every run, hours by `make fuzz`."""

import os
import random
import time

import pytest
from hypothesis import HealthCheck, seed, settings

from fuzz_targets import COUNTS, TARGETS

# Rows without a weight, and means that were altered, are far outside by right.
pytestmark = pytest.mark.filterwarnings("ignore::sparsestep.errors.FarRowsWarning")

EXAMPLES_IN_A_ROUND = 200


@pytest.mark.parametrize("name", TARGETS)
def test_a_short_round(name):
    settings(max_examples=30, suppress_health_check=list(HealthCheck))(TARGETS[name])()


@pytest.mark.fuzz
@pytest.mark.parametrize("name", TARGETS)
def test_rounds_until_the_time_is_up(name):
    target = settings(
        max_examples=EXAMPLES_IN_A_ROUND,
        derandomize=False,
        database=None,
        suppress_health_check=list(HealthCheck),
    )(TARGETS[name])
    end = time.monotonic() + 60 * float(os.environ.get("FUZZ_MINUTES", "60")) / len(TARGETS)
    while time.monotonic() < end:
        number = random.SystemRandom().randrange(2**32)
        try:
            seed(number)(target)()
        except BaseException:
            print(f"found by {name} with seed {number}")
            raise
        finally:
            print(f"{name}: {counts(name)}", flush=True)


def counts(name):
    """What became of a target's examples so far."""
    parts = [
        f"{n} {key[1]}" for key, n in COUNTS.items() if isinstance(key, tuple) and key[0] == name
    ]
    return ", ".join(parts)

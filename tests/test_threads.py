"""One thread of linear algebra for each of several callers, whichever thread they are in."""

import os
import subprocess
import sys

import pytest

CONTROL = """
import threading
from concurrent.futures import ThreadPoolExecutor
import scipy.linalg
from threadpoolctl import threadpool_limits
from sparsestep.threads import blas_threads, one_blas_thread

def limited():
    with one_blas_thread():
        return blas_threads()

assert blas_threads() == 2
"""


def run(script):
    """In a process of its own, as the tests themselves run with one thread."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", CONTROL + script], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("first", ["limited()", "None"])
def test_in_any_thread(first):
    run(f"""
{first}
with ThreadPoolExecutor(1) as pool:
    assert pool.submit(limited).result() == 1
    assert blas_threads() == 2
    assert limited() == 1
    assert blas_threads() == 2
""")


def test_the_last_of_several_lifts_the_limit():
    run("""
entered, leave = threading.Event(), threading.Event()

def first():
    with one_blas_thread():
        entered.set()
        leave.wait()

with ThreadPoolExecutor(1) as pool:
    done = pool.submit(first)
    entered.wait()
    with one_blas_thread():
        leave.set()
        done.result()
        assert blas_threads() == 1
    assert blas_threads() == 2
""")


def test_others_may_set_it_before_and_after():
    run("""
def by_others():
    with threadpool_limits(1):
        inside = limited(), blas_threads()
    return *inside, blas_threads()

with ThreadPoolExecutor(1) as pool:
    limited()
    assert pool.submit(by_others).result() == (1, 1, 2)
    assert by_others() == (1, 1, 2)
    assert blas_threads() == 2
""")

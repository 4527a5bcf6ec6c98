"""Whether a change made anything slower: the same cases on two versions, in turn, in one run.

    PYTHONPATH=benchmarks python -m check.run [--base REVISION]

`make bench-check` does it. The cases are in `cases`, what counts as slower is in `compare`.
"""

"""The same cross-validation by other libraries: how long it takes, and what is recovered.

    PYTHONPATH=benchmarks python -m rivals.run      the fits, into docs/benchmarks/rivals.json
    PYTHONPATH=benchmarks python -m rivals.table    the results, into docs/benchmarks.md
    PYTHONPATH=benchmarks python -m rivals.plot     the results, into docs/benchmarks/rivals.svg

`make bench-rivals` does the three. The problems are in `problems`, the contestants in `libraries`,
the sizes and limits in `config`; `contestant` is the process that a library fits in.
"""

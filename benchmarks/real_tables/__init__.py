"""Real tables with more rows than columns: what each way to choose alpha predicts, and keeps.

    PYTHONPATH=benchmarks python -m real_tables.run     into docs/benchmarks/real_tables.json
    PYTHONPATH=benchmarks python -m real_tables.page    from there into docs/real_data.md
    PYTHONPATH=benchmarks python -m real_tables.plot    and into docs/benchmarks/real_tables.svg

`make bench-tables` does the three. The tables are in `data`, the methods in `methods`.
"""

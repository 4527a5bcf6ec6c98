"""The simulation study of the paper: 180 data sets, six methods, four measures.

In: a scale and a seed. Out: a folder with results, ranks, tests, verdicts on the paper's claims,
pictures and a page. The modules in the order of the flow: `datasets` draws, `methods` fits
(`descent` computes lasso, SCAD and MC+), `run` does that for all data sets into the table of
`results`, `statistics` ranks and tests, `claims` judges, `figures` draws, `report` writes.
"""

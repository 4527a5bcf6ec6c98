"""Sizes, repeats, threads and limits."""

from dataclasses import dataclass, replace

from rivals.problems import Problem


@dataclass(frozen=True)
class Config:
    """What a run does."""

    problems: dict[str, Problem]
    repeats: int  # each on data with a seed of its own
    limit: float  # seconds for one fit
    budget: float  # seconds for the repeats of one cell, after which there are no more


THREADS = 2
FOLDS = 10
PENALTIES = 100
SETTING_UP = 600.0  # seconds for making data, imports and just-in-time compilation

PROBLEMS = {
    "paper_100": Problem("as in the paper, 100 columns", 20_000, 100, 25, 1.0),
    "paper_500": Problem("as in the paper, 500 columns", 20_000, 500, 125, 1.0),
    "small": Problem("small", 500, 50, 12, 1.0),
    "clear": Problem("few variables, little noise", 2_000, 200, 10, 10.0, coefficients="signs"),
    "wide": Problem("more columns than rows", 200, 5_000, 10, 10.0, coefficients="signs"),
    "neighbours": Problem(
        "correlated neighbours",
        2_000,
        200,
        20,
        3.0,
        design="autoregressive",
        correlation=0.9,
        coefficients="signs",
    ),
    "polynomial": Problem(
        "polynomial of degree 4", 5_000, 209, 20, 3.0, design="polynomial", coefficients="signs"
    ),
}

FULL = Config(PROBLEMS, repeats=3, limit=40.0, budget=30.0)

_TINY = {
    "paper_100": (500, 20, 5),
    "paper_500": (500, 40, 10),
    "small": (100, 10, 3),
    "clear": (200, 20, 3),
    "wide": (60, 200, 3),
    "neighbours": (200, 20, 4),
    "polynomial": (200, 27, 4),
}
QUICK = Config(
    {
        name: replace(PROBLEMS[name], rows=rows, columns=columns, nonzero=nonzero)
        for name, (rows, columns, nonzero) in _TINY.items()
    },
    repeats=2,
    limit=10.0,
    budget=20.0,
)

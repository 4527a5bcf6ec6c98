"""Sparse linear regression without shrinkage."""

__version__ = "0.1.0"

__all__ = ["__version__"]

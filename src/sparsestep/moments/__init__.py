"""Rows become sums that merge.

In: arrays, frames and batches of rows. Out: `Moments`, the centred sums of products of a set of
rows, which is all that the rest of the package needs to know of them.
"""

from sparsestep.moments.moments import Moments

__all__ = ["Moments"]

"""What counts as slower."""

from dataclasses import dataclass
from statistics import median

LIMIT = 0.15


@dataclass(frozen=True)
class Comparison:
    """One case on the base and on the branch, in as many rounds; None where it could not run."""

    case: str
    base: list[float | None]
    branch: list[float | None]

    @property
    def ratio(self):
        """Median over the rounds of branch / base; None if the two cannot be compared.

        The two of a round ran one after the other, so a machine that is slow for a while is slow
        for both: the ratio of the two medians would not know that.
        """
        pairs = zip(self.base, self.branch, strict=True)
        ratios = [branch / base for base, branch in pairs if base and branch]
        return median(ratios) if ratios else None

    @property
    def broken(self):
        """Whether the base could do it and the branch cannot."""
        return any(self.base) and not any(self.branch)

    @property
    def slower(self):
        """Whether the branch takes longer than the limit allows."""
        return self.ratio is not None and self.ratio > 1 + LIMIT

    def plus(self, other):
        """With the rounds of another comparison of the same case."""
        return Comparison(self.case, self.base + other.base, self.branch + other.branch)

    def line(self, slower):
        """A line of the table, with the verdict."""
        times = (median_text(self.base), median_text(self.branch))
        if self.broken:
            verdict = "BROKEN"
        elif self.ratio is None:
            verdict = "not comparable"
        else:
            verdict = f"{self.ratio:6.2f}{'  SLOWER' if slower else ''}"
        return f"{self.case:<30}{times[0]:>12}{times[1]:>12}  {verdict}"


def median_text(times):
    """Median in milliseconds."""
    known = [value for value in times if value is not None]
    return f"{1e3 * median(known):.1f} ms" if known else "-"


def confirmed(first, again):
    """A suspicion holds if the rounds taken to check it show it, and all rounds together do."""
    together = first.plus(again)
    return first.slower and again.slower and together.slower

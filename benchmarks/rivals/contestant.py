"""A process in which one library fits one problem, each time it is given the seed of new data.

    python -m rivals.contestant PROBLEM LIBRARY [--quick] < seeds

Answers each seed with the line "fitting" when the clock starts and a line of JSON when it stops.
What exceeds a limit ends the process by SIGALRM, whatever compiled code it is in.
"""

import argparse
import json
import os
import signal
import sys
import time

from rivals.config import FULL, QUICK, SETTING_UP
from rivals.libraries import LIBRARIES


def fitted(library, data, limit, answers):
    """Seconds of a fit and what it recovered."""
    if not library.in_r:
        # Imports, just-in-time compilation and the start of worker processes happen here.
        library.fit(data.X[:200, :20], data.y[:200])
    print("fitting", file=answers, flush=True)
    signal.setitimer(signal.ITIMER_REAL, limit)
    began = time.perf_counter()
    result = library.fit(data.X, data.y)
    seconds = time.perf_counter() - began
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    if result.seconds is not None:
        seconds = result.seconds
    report = {"seconds": round(seconds, 6), "converged": result.converged}
    return report | data.recovered(result.coef, result.intercept)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("problem")
    parser.add_argument("library")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    config = QUICK if options.quick else FULL
    # Worker processes inherit the standard output and would keep it open when this process ends, so
    # answers go to a copy of it, which is not inherited.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    for seed in sys.stdin:
        signal.setitimer(signal.ITIMER_REAL, SETTING_UP)
        data = config.problems[options.problem].draw(int(seed))
        report = fitted(LIBRARIES[options.library], data, config.limit, answers)
        print(json.dumps(report), file=answers, flush=True)


if __name__ == "__main__":
    main()

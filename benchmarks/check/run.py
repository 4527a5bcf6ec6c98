"""Compare the working tree with a revision, and say what got slower.

    python -m check.run [--base REVISION] [--rounds N]

The base is the given revision; or where the branch left origin/main or main; or, without a branch,
the last commit if the tree differs from it, and the one before if not. A round runs all cases on
both, each in a process of its own, the order changing from round to round. What looks slower is
measured again, with twice the rounds, before it counts. Ends with 1 if anything got slower or
stopped working.
"""

import argparse
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from check.compare import LIMIT, Comparison, confirmed

ROOT = Path(__file__).parents[2]


def git(*arguments):
    """What git says, or None if it refuses."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def base_revision():
    """What the working tree is a change to."""
    head = git("rev-parse", "HEAD")
    for trunk in ("origin/main", "main"):
        base = git("merge-base", "HEAD", trunk)
        if base is not None and base != head:
            return base
    changed = git("status", "--porcelain", "--", "src")
    return head if changed else git("rev-parse", "HEAD~1")


def unpack(revision, folder):
    """A revision, compiled; a copy, because a worktree would outlive an interrupted run."""
    archive = subprocess.run(
        ["git", "archive", revision], cwd=ROOT, capture_output=True, check=True
    )
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
        tar.extractall(folder, filter="data")
    # Where the package was not yet compiled there is no setup.py.
    if (Path(folder) / "setup.py").exists():
        command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
        subprocess.run(command, cwd=folder, stderr=subprocess.DEVNULL, check=True)
    return Path(folder) / "src"


def times(source, cases):
    """Seconds of the cases on the package in `source`."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(source), str(ROOT / "benchmarks")]),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "check.cases", *cases],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def compare(base, branch, cases, rounds):
    """Comparisons of the cases."""
    taken = {base: [], branch: []}
    for number in range(rounds):
        for source in (base, branch) if number % 2 == 0 else (branch, base):
            taken[source].append(times(source, cases))
        print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    return [
        Comparison(case, *([one[case] for one in taken[source]] for source in (base, branch)))
        for case in taken[branch][0]
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base", help="revision to compare with")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    revision = git("rev-parse", "--verify", f"{options.base or base_revision()}^{{commit}}")
    if revision is None:
        parser.error(f"git knows no revision {options.base!r}")
    print(f"Base: {git('log', '-1', '--format=%h %s', revision)}")
    with tempfile.TemporaryDirectory() as folder:
        base, branch = unpack(revision, folder), ROOT / "src"
        # The first run of a version fills caches.
        for source in (base, branch):
            times(source, [])
        results = compare(base, branch, [], options.rounds)
        slower = {result.case for result in results if result.slower}
        if slower:
            print(f"measuring again: {', '.join(sorted(slower))}", file=sys.stderr)
            again = {
                result.case: result
                for result in compare(base, branch, sorted(slower), 2 * options.rounds)
            }
            slower = {
                result.case
                for result in results
                if result.case in again and confirmed(result, again[result.case])
            }
            results = [
                result.plus(again[result.case]) if result.case in again else result
                for result in results
            ]
    print(f"{'':<30}{'base':>12}{'branch':>12}   ratio")
    for result in results:
        print(result.line(result.case in slower))
    broken = [result.case for result in results if result.broken]
    if broken:
        print(f"No longer works: {', '.join(broken)}.")
    if slower:
        print(f"More than {LIMIT:.0%} slower: {', '.join(sorted(slower))}.")
    if broken or slower:
        raise SystemExit(1)
    print(f"Nothing is more than {LIMIT:.0%} slower.")


if __name__ == "__main__":
    main()

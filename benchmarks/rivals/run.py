"""Run every library on every problem, and write what each took and recovered.

    python -m rivals.run [--quick] [--problems a,b] [--libraries a,b] [--output FILE]

The libraries take turns, each in a process of its own with the threads pinned, so that whatever
else the machine does hits all of them. A repeat draws new data, the same for all. With --problems
or --libraries only those cells are measured anew; the others in the file stay.
"""

import argparse
import contextlib
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path

from rivals.config import FOLDS, FULL, PENALTIES, QUICK, THREADS
from rivals.libraries import LIBRARIES

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "benchmarks" / "rivals.json"


class Contestant:
    """A library's process, started when first asked to fit."""

    def __init__(self, problem, library, config, quick, scratch):
        self.command = [sys.executable, "-m", "rivals.contestant", problem, library]
        self.command += ["--quick"] * quick
        threads = str(LIBRARIES[library].blas_threads)
        self.environment = os.environ | {
            "OMP_NUM_THREADS": str(THREADS),
            "OPENBLAS_NUM_THREADS": threads,
            "MKL_NUM_THREADS": threads,
            "NUMBA_NUM_THREADS": "1",
            "PYTHONPATH": str(ROOT / "benchmarks"),
            "PYTHONWARNINGS": "ignore",  # of worker processes; those of its own are counted
            "JOBLIB_TEMP_FOLDER": scratch,
            "TMPDIR": scratch,
        }
        self.limit = config.limit
        self.stderr = Path(scratch) / f"{library}.stderr"
        self.process = None

    def fit(self, seed):
        """What a fit took and recovered, or why there is none."""
        if self.process is None:
            self.process = subprocess.Popen(
                self.command,
                env=self.environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.stderr.open("w"),
                text=True,
                start_new_session=True,
            )
        print(seed, file=self.process.stdin, flush=True)
        began = False
        for line in self.process.stdout:
            began = began or line == "fitting\n"
            if line.startswith("{"):
                report = json.loads(line)
                return report if report["seconds"] <= self.limit else {"timed_out": True}
        late = self.process.wait() == -signal.SIGALRM
        self.close()
        if late and began:
            return {"timed_out": True}
        said = self.stderr.read_text().strip().splitlines()
        return {
            "failed": "setting up took too long" if late else (said or ["no message"])[-1][:200]
        }

    def close(self):
        """End the process and its workers, which would go on with the fit."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def machine():
    """Processor and operating system."""
    processor = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        processor = next(line.split(":")[1].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        pass
    try:
        system = platform.freedesktop_os_release()["PRETTY_NAME"]
    except OSError:
        system = platform.platform(terse=True)
    return {
        "processor": processor,
        "cores": os.cpu_count(),
        "system": system,
        "python": platform.python_version(),
    }


def commit():
    """Of this repository, with a mark if there are changes on top."""
    asked = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    found = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True)
    return found.stdout.strip() or None


def save(results, path):
    """Write the results, a run to a line."""
    head = {key: value for key, value in results.items() if key != "runs"}
    text = json.dumps(head, indent=1, ensure_ascii=False)[:-2]
    runs = ",\n  ".join(json.dumps(run) for run in results["runs"])
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    temporary.write_text(f'{text},\n "runs": [\n  {runs}\n ]\n}}\n', encoding="utf-8")
    temporary.replace(path)


def chosen(names, known):
    """The names asked for, checked."""
    wanted = names.split(",") if names else list(known)
    for name in wanted:
        if name not in known:
            raise SystemExit(f"There is no {name!r}; choose from {', '.join(known)}.")
    return wanted


def main():
    # Or the contestants, in sessions of their own, would go on.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to try the code")
    parser.add_argument("--problems", default="", help="only these, separated by commas")
    parser.add_argument("--libraries", default="", help="only these, separated by commas")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    config = QUICK if options.quick else FULL
    if options.quick and options.output is None:
        parser.error("--quick measures nothing worth keeping: say with --output where it may go")
    path = options.output or RESULTS
    problems = chosen(options.problems, config.problems)
    libraries = chosen(options.libraries, LIBRARIES)
    versions = {name: LIBRARIES[name].version() for name in LIBRARIES}
    results = {
        "quick": options.quick,
        "machine": machine(),
        "versions": versions,
        "threads": THREADS,
        "folds": FOLDS,
        "penalties": PENALTIES,
        "limit": config.limit,
        "problems": {name: vars(problem) for name, problem in config.problems.items()},
    }
    runs = []
    if (options.problems or options.libraries) and path.exists():
        before = json.loads(path.read_text(encoding="utf-8"))
        runs = [
            run
            for run in before.pop("runs")
            if run["problem"] not in problems or run["library"] not in libraries
        ]
        if before != results:
            parser.error(f"{path} is of other versions, problems or machine: measure all anew")
    results["runs"] = runs
    when = {"date": date.today().isoformat(), "commit": commit()}
    for problem in problems:
        print(f"== {config.problems[problem].label}", flush=True)
        with tempfile.TemporaryDirectory() as scratch, contextlib.ExitStack() as stack:
            contestants = {}
            for name in libraries:
                contestants[name] = Contestant(problem, name, config, options.quick, scratch)
                stack.callback(contestants[name].close)
            spent = dict.fromkeys(libraries, 0.0)
            for seed in range(config.repeats):
                for name in libraries:
                    if spent[name] >= config.budget:
                        continue
                    missing = versions[name] is None
                    report = {"missing": True} if missing else contestants[name].fit(seed)
                    # What failed or ran out of time once would do so again.
                    spent[name] += report.get("seconds", config.budget)
                    runs.append({"problem": problem, "library": name, "seed": seed} | when | report)
                    said = report.get("seconds", report)
                    print(f"  {LIBRARIES[name].label}, data {seed}: {said}", flush=True)
        save(results, path)
    print(f"Written: {path}")


if __name__ == "__main__":
    main()

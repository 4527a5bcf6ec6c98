"""The command line: `sparsestep`, and `python -m sparsestep`.

Nothing but the standard library is imported before the arguments are known. `app` has the commands
and their help; each command is in a module of its name, `merge` in that of `moments`, `predict` and
`report` in `model`. All share `options`, `inputs` (from arguments to moments), `outputs` (what is
printed and what is written) and `errors` (what went wrong, and the exit code).
"""

import os
import signal
import sys
from io import TextIOWrapper
from typing import NoReturn

__all__ = ["main", "run_command"]


def main() -> NoReturn:
    """Run the command of this process's arguments, and exit."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _terminated)
    # A stream that was closed is None; a file opened next would get its number.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        # A name that the terminal cannot show is shown by the numbers of its characters.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if sys.argv[1:2] not in (["demo"], ["study"]):
        sys.meta_path.insert(0, _WithoutPandas())
    code = run_command(sys.argv[1:])
    try:
        sys.stdout.flush()
    except OSError as error:
        from sparsestep.cli.errors import explained

        # The interpreter would try again, and complain in its own words.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = code or explained(error, [])
    sys.exit(code)


class _WithoutPandas:
    """Hides pandas, which pyarrow imports for its first value if it is there.

    The commands that read tables never see a frame, and would take half as long again to start.
    """

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        """Refuse one module, and leave all others to the finders that follow."""
        if name == "pandas":
            raise ModuleNotFoundError("pandas is not for this command", name=name)


def _terminated(number: int, frame: object) -> NoReturn:
    """Exit by an exception, so that half-written files are removed."""
    sys.exit(128 + number)


def run_command(arguments: list[str]) -> int:
    """Run a command; its exit code."""
    try:
        from sparsestep.cli.app import app

        app(arguments, exit_on_error=False, print_error=False)
        return 0
    except (Exception, KeyboardInterrupt, SystemExit) as caught:
        from sparsestep.cli.errors import explained

        error: BaseException = caught
        if isinstance(caught, SystemExit):
            # rich leaves in this way, with another code, when nobody reads its output.
            if not isinstance(caught.__context__, BrokenPipeError):
                raise
            error = caught.__context__
        return explained(error, arguments)

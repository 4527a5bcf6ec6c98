"""What went wrong, in one sentence on standard error; and the exit code.

=====  ==================================================================
2      the input, the options or the place for the output cannot be used
1      something unexpected, which is our mistake
130    Ctrl-C
141    nobody reads the output any more
=====  ==================================================================
"""

import os
import sys
import traceback

from sparsestep.words import printable

__all__ = ["explained"]

TRACEBACK = "SPARSESTEP_TRACEBACK"


def explained(error: BaseException, arguments: list[str]) -> int:
    """Say what went wrong; the exit code."""
    if isinstance(error, BrokenPipeError):
        # The interpreter flushes once more when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    if os.environ.get(TRACEBACK):
        traceback.print_exception(error)
    code, text = _code_and_text(error, arguments)
    print(printable(text), file=sys.stderr)
    return code


def _code_and_text(error: BaseException, arguments: list[str]) -> tuple[int, str]:
    """The exit code and the sentence."""
    while isinstance(error, ImportError) and isinstance(error.__cause__, ImportError):
        # A command that cannot be imported is wrapped in the news that it cannot.
        error = error.__cause__
    text = " ".join(str(error).split())
    origin = type(error).__module__.split(".")[0]
    if isinstance(error, KeyboardInterrupt):
        return 130, "Interrupted."
    if origin == "cyclopts":
        from cyclopts import MissingArgumentError, UnknownCommandError

        if isinstance(error, MissingArgumentError) and error.argument and error.keyword is None:
            # Its name is not there either.
            text = f"sparsestep {arguments[0]} needs {' or '.join(error.argument.names)}."
        known = arguments and not isinstance(error, UnknownCommandError)
        command = [arguments[0]] if known and not arguments[0].startswith("-") else []
        return 2, f"{_ended(text)} See: {' '.join(['sparsestep', *command, '--help'])}"
    if isinstance(error, MemoryError):
        return 2, "There is not enough memory for this; use fewer columns or fewer alphas."
    if isinstance(error, OSError) and error.errno is not None:
        reason = (os.strerror(error.errno) or text).lower()
        if error.filename is None:
            return 2, f"The output cannot be written: {reason}."
        return 2, f"{os.fsdecode(error.filename)} cannot be used: {reason}."
    if isinstance(error, ValueError | TypeError | OSError | ImportError) or origin == "pyarrow":
        return 2, _ended(text)
    kind = type(error).__name__
    return 1, (
        f"Something unexpected went wrong ({kind}{': ' if text else ''}{text}); set {TRACEBACK}=1 "
        "to see where, and please report it."
    )


def _ended(text: str) -> str:
    """A sentence with a full stop."""
    return text if text.endswith((".", "?", "!")) else f"{text}."

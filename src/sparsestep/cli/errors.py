"""What went wrong, in one sentence on standard error, by the options; and the exit code.

=====  ==================================================================
2      the input, the options or the place for the output cannot be used
1      something unexpected, which is our mistake
130    Ctrl-C
141    nobody reads the output any more
=====  ==================================================================
"""

import os
import shlex
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sparsestep.errors import (
    InputError,
    MissingValueError,
    ModelSizeError,
    NotNumbersError,
    UnknownCategoryError,
)
from sparsestep.words import printable

if TYPE_CHECKING:
    from sparsestep.cli.options import TableOptions

__all__ = ["explained", "said_by_options"]

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
        # cyclopts wraps the error of a command that cannot be imported.
        error = error.__cause__
    text = " ".join(str(error).split())
    origin = type(error).__module__.split(".")[0]
    if isinstance(error, KeyboardInterrupt):
        return 130, "Interrupted."
    if origin == "cyclopts":
        from cyclopts import MissingArgumentError, UnknownCommandError

        if isinstance(error, MissingArgumentError) and error.argument and error.keyword is None:
            # The message of cyclopts does not name the option.
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


@contextmanager
def said_by_options(table: "TableOptions | None" = None) -> Iterator[None]:
    """Advise options where Python's interface advises parameters; `table` if one is fitted to."""
    try:
        yield
    except NotNumbersError as error:
        raise InputError(_not_numbers(error, table)) from error
    except (MissingValueError, UnknownCategoryError) as error:
        remedy = "use --missing-as-null to leave such predictions out"
        if table is not None:
            remedy = "fill it in, or leave out such rows with --drop-missing"
        raise error.advising(remedy) from error
    except ModelSizeError as error:
        raise InputError(error.sentence("--size", " ")) from error


def _not_numbers(error: NotNumbersError, table: "TableOptions | None") -> str:
    """The sentence on a column without numbers; one that a model needs cannot be left out."""
    mark = "give the decimal mark by --decimal" if error.decimal else ""
    if table is None:
        return error.sentence(mark, error.advice)
    if error.name in (table.target, table.weight):
        role = "The target" if error.name == table.target else "The weight"
        return error.sentence(mark, error.advice, column=role)
    name, advice, category = shlex.quote(str(error.name)), error.advice, ""
    if error.what in ("text", "categories") and not table.one_hot:
        advice = "encode it with --one-hot"
    elif error.what == "dates or times":
        category = f"take it for categories with --category {name}"
    return error.sentence(mark, advice, category, f"leave it out with --drop {name}")

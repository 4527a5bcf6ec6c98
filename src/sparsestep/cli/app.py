"""The commands, each in a module that is imported when it is called."""

from cyclopts import App

from sparsestep import __version__
from sparsestep.cli.help import COMMANDS, ROOT

__all__ = ["app", "run"]

app = App(
    name="sparsestep",
    help=ROOT,
    version=__version__,
    help_format="plaintext",
    result_action="return_value",
    suppress_keyboard_interrupt=False,
)
for _name, _help in COMMANDS.items():
    _home = "study.command" if _name == "study" else f"cli.{_name}"
    app.command(f"sparsestep.{_home}:{_name}", name=_name, help=_help, help_format="markdown")
app.register_install_completion_command(help="Install completion for your shell, and exit.")


def run(arguments: list[str]) -> int:
    """Run one command; 0 if all went well."""
    app(arguments, exit_on_error=False, print_error=False)
    return 0

"""The commands and their help; each command is in a module that is imported when it is called."""

from cyclopts import App, Parameter

from sparsestep import __version__

ROOT = """Sparse linear regression without shrinkage: from a table to an answer.

For example:
  sparsestep demo
  sparsestep fit patients.csv --target progression --report report.html
  sparsestep fit "sales/*.parquet" --target revenue --model model.json
  sparsestep predict model.json new.parquet -o predicted.parquet

A table is a Parquet, CSV or Arrow file, or a folder or pattern of such
files, of any size. Each command has its own --help, with examples.
"""

# The list of commands shows the first line of each.
COMMANDS = {
    "demo": """See it at work on built-in data.

The diabetes data of scikit-learn (442 patients, 10 measurements) with all squares and products of
two: 64 candidate variables. SparseStep and the lasso choose by the same ten folds. Writes a report.

```
sparsestep demo
sparsestep demo --report demo.html
```
""",
    "fit": """Fit a model to a table.

Alpha, the price of a variable, is chosen by ten-fold cross-validation unless one of --cv, --alpha,
--criterion and --size says otherwise.

```
sparsestep fit patients.csv --target progression
sparsestep fit patients.csv --target progression --report report.html
sparsestep fit patients.csv --target progression --cv 5 --rule paired
sparsestep fit patients.csv --target progression --criterion bic
sparsestep fit patients.csv --target progression --size 5 --drop id,name
sparsestep fit "sales/*.parquet" --target revenue --features price,ads
sparsestep fit flats.csv --target price --one-hot --drop-missing
sparsestep fit flats.csv --target price --category zip,year --always size
sparsestep fit excel.csv --target price --encoding cp1252
sparsestep fit site-1.npz site-2.npz site-3.npz --target price
```
""",
    "path": """Show what enters as the penalty falls.

Prints a line for each alpha at which the set of variables changes.

```
sparsestep path patients.csv --target progression
sparsestep path patients.csv --target progression --alphas sizes
sparsestep path patients.csv --target progression --plot path.svg
sparsestep path patients.csv --target progression --plot path.svg --standardized
sparsestep path patients.csv --target progression -o path.csv
sparsestep path site-1.npz site-2.npz
```
""",
    "predict": """Predict the rows of a table.

The rows are read and written in batches, so a table may be larger than memory; of its columns only
those that the model kept are needed. The predictions are in the column `prediction`, in the order
of the rows.

```
sparsestep predict model.json new.csv -o predicted.csv
sparsestep predict model.json "new/*.parquet" -o all.parquet --keep id
```
""",
    "moments": """Reduce a table to its moments.

Moments are the means and the sums of squares and products of the columns, all that a fit needs.
Those of several tables merge without loss. A file is as large for a trillion rows as for a
thousand. Of fewer rows than columns it holds the rows themselves, and a note says so.

```
sparsestep moments patients.csv --target progression -o site-1.npz
sparsestep moments "sales/*.parquet" --target revenue --folds 10 -o s.npz
sparsestep fit s-fold-*.npz --target revenue
```
""",
    "merge": """Merge moments of several tables.

The result is the same as if their rows were one table.

```
sparsestep merge site-1.npz site-2.npz -o both.npz
sparsestep fit both.npz --target progression --criterion bic
```
""",
    "report": """Write the report on a model.

One HTML file that needs no other and no network: what was asked, what was kept, the coefficients
with their intervals, the path with a slider over alpha, how alpha was chosen, and warnings.

```
sparsestep report model.json
sparsestep report model.json -o report.html
```
""",
    "study": """Repeat the simulation study of the paper.

Six methods and four measures, on 135 small data sets or on the paper's 180. A run that was stopped,
even killed, goes on where it was when it is started again with the same options; the results are
the same, and do not depend on the number of jobs.

```
sparsestep study
sparsestep study --scale paper --replicates 10 --out study-paper
sparsestep study --stage draw
```
""",
}

# The modules of the commands that are not in one of their own name.
HOMES = {"merge": "cli.moments", "predict": "cli.model", "report": "cli.model"}
HOMES |= {"study": "study.command"}

app = App(
    name="sparsestep",
    help=ROOT,
    version=__version__,
    help_format="plaintext",
    # No option has a --no- form, and that a switch is off goes without saying.
    default_parameter=Parameter(
        negative="",
        show_default=lambda value: None if value is None or value is False else str(value),
    ),
    result_action="return_value",
    suppress_keyboard_interrupt=False,
)
for _name, _help in COMMANDS.items():
    _home = HOMES.get(_name, f"cli.{_name}")
    app.command(f"sparsestep.{_home}:{_name}", name=_name, help=_help, help_format="markdown")
app.register_install_completion_command(help="Install completion for your shell, and exit.")

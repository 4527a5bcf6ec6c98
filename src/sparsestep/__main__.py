"""`python -m sparsestep` is the command `sparsestep`."""

from sparsestep.cli import main

if __name__ == "__main__":
    main()

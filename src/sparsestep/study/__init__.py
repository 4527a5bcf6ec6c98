"""The simulation study of the paper: 180 data sets, six methods, four measures."""

"""Alternative tables found in advance, which show that a cell is safe without a linear program."""

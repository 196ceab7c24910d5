"""One module per group of commands of `scantling`; `cli` says what commands there are."""

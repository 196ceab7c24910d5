"""The design desk and the design report on top of scantling."""

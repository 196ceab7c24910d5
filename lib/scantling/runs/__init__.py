"""How right it is, and how fast: published runs and figures, calibration, validation, own
measurements."""

"""Charts of assessments, plans, sweeps, networks and published runs."""

"""What to change: fixes, what to avoid, why, direct answers, sensitivity, sweeps, diagnosis."""

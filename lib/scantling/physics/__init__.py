"""What a plan takes: memory by stage and time of a step, over columns of plans at once."""

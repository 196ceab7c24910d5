"""What a long run takes: failures, checkpoints, recovery, storage, goodput and cost."""

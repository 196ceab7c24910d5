"""Plan large LLM training runs: memory, step time, MFU, goodput, days and cost of a design."""

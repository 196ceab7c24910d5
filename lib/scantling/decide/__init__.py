"""Which plan, why, what if not: the search, the verdict, and what follows from it."""

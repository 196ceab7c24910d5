"""What a design is: model, cluster, job and plan, from a file, a line of text or a published
config."""

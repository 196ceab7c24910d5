"""Planning for coding agents: a server of the Model Context Protocol, and a page that says how to
plan with the kit."""

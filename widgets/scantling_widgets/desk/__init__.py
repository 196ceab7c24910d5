"""The desk: controls, headline, panels and what connects them."""

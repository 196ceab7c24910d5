"""Servers and pages: JupyterLab and Voilà, walkthroughs, gallery, the static site."""

"""The walkthroughs: one module each, with its facts and its questions; the notebooks in
notebooks/walkthroughs tell the story."""

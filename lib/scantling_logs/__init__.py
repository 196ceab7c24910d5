"""Logs of training jobs: recognised by content, read as a stream, turned into measured figures and
into a calibration of the site."""
